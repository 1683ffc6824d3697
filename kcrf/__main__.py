"""`python -m kcrf` is the command line."""

import sys

from kcrf.commands import main

sys.exit(main())

"""`python -m kcrf` is the command line."""

import sys

from kcrf.cli import main

sys.exit(main())

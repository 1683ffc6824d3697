"""bert4keras' `snippets` by their names."""

from kcrf.bert4keras.absent_names import page
from kcrf.bert4keras.helpers import *  # noqa: F403
from kcrf.bert4keras.helpers import is_py2

__getattr__ = page("snippets")

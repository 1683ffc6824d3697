"""Tasks, one file for each: its settings, its data, its labels and its scores. Needs no Keras."""

from kcrf.tasks.errors import SettingError, Wording
from kcrf.tasks.facts import DataFacts
from kcrf.tasks.mismatch import MismatchError
from kcrf.tasks.table import TASKS, task_of
from kcrf.tasks.task import Task

__all__ = []

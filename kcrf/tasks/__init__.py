"""Tasks, one file for each: its settings, its data, its labels and its scores. Needs no Keras."""

from kcrf.tasks.errors import MismatchError, SettingError, Wording
from kcrf.tasks.table import TASKS, task_of
from kcrf.tasks.task import DataFacts, Task

__all__ = []

"""All tasks by name. Needs no Keras."""

from kcrf.tasks.classification import Classification
from kcrf.tasks.entities import Entities
from kcrf.tasks.segmentation import Segmentation
from kcrf.tasks.task import Task
from kcrf.tasks.tokens import TokenTagging
from kcrf.tasks.words_with_classes import WordsWithClasses

_ALL: tuple[Task, ...] = (Segmentation(), Entities(), TokenTagging(), WordsWithClasses(), Classification())
TASKS = {task.name: task for task in _ALL}


def task_of(name: str) -> Task:
    """The task of this name. Raises ValueError if there is none."""
    if name not in TASKS:
        raise ValueError(f"`task` is one of {tuple(TASKS)}. Received: {name!r}")
    return TASKS[name]

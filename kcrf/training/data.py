"""The data of a run: its parts, checked, unlabeled texts, and augmented copies."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

from kcrf.augmentation import altered_copies
from kcrf.augmentation.copies import copies_wanted
from kcrf.corpora import sample
from kcrf.corpora.sentences import for_each_standard
from kcrf.readers.units import with_copies
from kcrf.runs import Settings
from kcrf.runs.training_config import AugmentationConfig
from kcrf.tasks import SettingError, Task, task_of


@dataclass(frozen=True)
class RunData:
    """The data of a run.

    Attributes:
        task: The task.
        whole: A list of `Sentence`s or `Example`s for each of "train", "valid" and maybe "test".
        parts: The same, with a sample of "train" if the user limits its size.
        texts: The unlabeled texts.
        copies: For each item of the training set a list of its augmented copies; None without augmentation.
        given: The training set before its missing labels were estimated; None if they are not estimated.
    """

    task: Task
    whole: dict[str, list[Any]]
    parts: dict[str, list[Any]]
    texts: list[Any]
    copies: list[list[Any]] | None = None
    given: list[Any] | None = None

    def training_items(self) -> list[Any]:
        """The items of the training set, each followed by its copies."""
        return with_copies(self.parts["train"], self.copies)

    def fingerprints(self) -> dict[str, str]:
        """A hash of the content of each part, as given, of all tokens, and of copies and unlabeled texts, if any."""
        parts = self.parts if self.given is None else {**self.parts, "train": self.given}
        content = {name: self.task.content(part) for name, part in parts.items()}
        content["tokens"] = [getattr(item, "tokens", None) for part in parts.values() for item in part]
        if self.copies is not None:
            content["copies"] = self.task.content([copy for copies in self.copies for copy in copies])
        if self.texts:
            content["unlabeled"] = self.texts
        return {name: _hash(items) for name, items in content.items()}


def _hash(items):
    return hashlib.sha256(repr(items).encode("utf-8", "surrogatepass")).hexdigest()


def read_data(user: Settings, train: Any, valid: Any, test: Any = None, unlabeled: Any = ()) -> RunData:
    """Checks the data of a run. The whole of `train` decides types, labels and units, even if its size is limited.

    Raises:
        ValueError: A part has no text, or an item has the wrong type for the task.
    """
    if isinstance(unlabeled, (str, PathLike)):
        raise TypeError(f"`unlabeled` must be a list of texts. Received: {str(unlabeled)[:40]!r}")
    task = task_of(user.task)
    datasets = {"train": train, "valid": valid, "test": test}
    whole = {name: task.check(name, _items(task, name, part)) for name, part in datasets.items() if part is not None}
    parts = whole
    if user.limit is not None:
        items, _ = sample(whole["train"], user.limit, user.seed, task.labels_to_balance(whole["train"]))
        missing = _standards(whole["train"]) - _standards(items)
        if missing:
            requirement = f"must leave a sentence of each standard, also of {min(missing)}"
            raise SettingError("limit", requirement, user.limit)
        parts = {**whole, "train": task.check("train", items)}  # a sample of sentences may be empty
    return RunData(task, whole, parts, list(unlabeled))


def _standards(items):
    return {getattr(item, "standard", None) for item in items} - {None}


def _items(task, name, part):
    """The items of a part, a list, or a dict of lists by segmentation standard."""
    if not isinstance(part, Mapping):
        return list(part)
    if "standards" not in task.settings:
        raise ValueError(f"`{name}` must be a list for task={task.name!r}. Received: a dict of {', '.join(part)}")
    return part


def augmented(data: RunData, augmentation: AugmentationConfig, seed: int) -> RunData:
    """The data with augmented copies of the training set, if there are to be any; those of a standard from its own."""
    if not augmentation.augment:
        return data
    task, items = data.task, data.parts["train"]
    wanted = copies_wanted(task.name, augmentation, seed)
    if not any(getattr(item, "standard", None) for item in items):
        return replace(data, copies=task.copies(altered_copies(items, **wanted)))

    def copies(standard, numbers):
        copies = task.copies(altered_copies([items[number] for number in numbers], **wanted))
        return [[replace(copy, standard=standard) for copy in row] for row in copies]

    return replace(data, copies=for_each_standard(items, copies))

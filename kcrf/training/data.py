"""The data of a run: its parts, checked, and unlabeled texts."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

from kcrf.corpora import sample
from kcrf.progress_bars import print_note, quiet
from kcrf.readers.units import with_copies
from kcrf.runs import Settings, resolve
from kcrf.runs.stages import AugmentationConfig
from kcrf.tasks import SettingError, Task, task_of

Parts = dict[str, list[Any]]
FOLDS, FEW = 4, 1000  # sentences at most that are all learned


@dataclass(frozen=True)
class RunData:
    """The data of a run."""

    task: Task
    whole: Parts  # a list of `Sentence`s or `Example`s for each of "train", "valid" and maybe "test"
    given: Parts  # the same, with a sample of "train" if the user limits its size
    parts: Parts  # the same, with the labels of the stages
    texts: list[Any]  # the unlabeled texts that are not blank
    unlabeled: list[Any] = field(default_factory=list)  # the items of the unlabeled texts
    copies: list[list[Any]] | None = None  # augmented copies of each item of the training set
    models: Mapping[str, str] = field(default_factory=dict)  # hashes of models that must not change before a resume
    is_held_out: bool = False  # whether the validation set is a part of the training data that were given
    apart: "RunData | None" = None  # the same, before the validation set became a part of the training set

    def rejoined(self, user: Settings) -> "RunData":
        """The data with the validation set as a part of the training set. Linear models are validated on all of it."""
        in_folds = user.encoder == "linear"

        def joined(parts: Parts) -> Parts:
            items = [*parts["train"], *parts["valid"]]
            return {**parts, "train": items, "valid": items if in_folds else parts["valid"]}

        whole, given, parts = map(joined, (self.whole, self.given, self.parts))
        return replace(self, whole=whole, given=given, parts=parts, apart=self)

    def training_items(self) -> list[Any]:
        """The items of the training set, each followed by its copies."""
        return with_copies(self.parts["train"], self.copies)

    def fingerprints(self) -> dict[str, str]:
        """The hashes of each part, as given, of all tokens, of copies and unlabeled texts, if any, and of models."""
        content = {name: self.task.content(part) for name, part in self.given.items()}
        content["tokens"] = [getattr(item, "tokens", None) for part in self.given.values() for item in part]
        if self.copies is not None:
            content["copies"] = self.task.content([copy for copies in self.copies for copy in copies])
        if self.texts:
            content["unlabeled"] = self.texts
        texts = {name: repr(items).encode("utf-8", "surrogatepass") for name, items in content.items()}
        return {name: hashlib.sha256(text).hexdigest() for name, text in texts.items()} | dict(self.models)


def read_data(
    user: Settings, train: Any, valid: Any = None, test: Any = None, unlabeled: Iterable[Any] = ()
) -> RunData:
    """Checks the data of a run. The whole of `train` decides types, labels and units, even if its size is limited."""
    if isinstance(unlabeled, (str, PathLike)):
        raise TypeError(f"`unlabeled` must be a list of texts. Received: {str(unlabeled)[:40]!r}")
    texts = [text for text in unlabeled if "".join(text).strip()]  # or pairs of texts
    if user.teacher is None and texts:
        raise ValueError("`unlabeled` needs a `teacher`. Received: teacher=None")
    task = task_of(user.task)
    is_held_out = valid is None
    train, valid = _with_held_out(task, train, valid, user)
    given = {"train": train, "valid": valid, **({} if test is None else {"test": test})}
    whole = {name: task.check(name, part) for name, part in given.items()}
    parts = whole
    if user.limit is not None:
        chosen, _ = sample(whole["train"], user.limit, user.seed, task.labels_to_balance(whole["train"]))
        missing = _standards(whole["train"]) - _standards(chosen)
        if missing:
            requirement = f"must leave a sentence of each standard, also of {min(missing)}"
            raise SettingError("limit", requirement, user.limit)
        parts = {**whole, "train": task.check("train", chosen)}  # a sample of sentences may be empty
    return RunData(task, whole, parts, parts, texts, is_held_out=is_held_out)


def note_training_texts(data: RunData) -> None:
    """Prints a note if more than half of a part is in the training data: its scores are not of other texts."""
    learned = ("train", "valid") if data.is_held_out else ("train",)
    texts = {data.task.vocabulary_text(item) for name in learned for item in data.whole[name]}
    others = {name: part for name, part in data.whole.items() if name not in learned}
    for name, part in others.items():
        both = sum(data.task.vocabulary_text(item) in texts for item in part)
        if both > len(part) / 2:
            counts = f"{both:,} of {len(part):,} texts"
            print_note(f"{name}: {counts} are in the training data, too; scores will be too high")


def learns_all(user: Settings, data: RunData) -> bool:
    """Whether the final model learns the held-out sentences, too: if they are few, and it is a network from scratch, or
    a linear model of entities that L-BFGS trains, which never stops early."""
    is_plain = all(isinstance(stage, AugmentationConfig) for stage in user.stages if stage.is_used)
    is_plain &= user.epochs is None and user.steps is None and not _standards(data.parts["train"])
    items = len(data.parts["train"]) + len(data.parts["valid"])
    if not (data.is_held_out and is_plain and 2 * FOLDS <= items <= FEW):
        return False
    if user.encoder != "linear":
        return user.bert is None and data.task.output == "tags"
    if user.task != "ner":
        return False
    with quiet(True):  # `plan_run` prints the notes
        facts = data.task.facts(user, data.whole)
    return resolve(user, replace(facts, items=items, windows=items)).optimizer.solver == "lbfgs"


def _standards(items: list[Any]) -> set[str]:
    return {getattr(item, "standard", None) for item in items} - {None}  # type: ignore[return-value]


def _with_held_out(task: Task, train: Any, valid: Any, user: Settings) -> tuple[Any, Any]:
    """The training and the validation set. If there is none, also of a standard, a tenth of `train` is held out."""
    if isinstance(train, Mapping) and "standards" in task.settings and isinstance(valid, Mapping | None):
        given = valid or {}
        checked = {name: task.check("train", {name: items}) for name, items in train.items()}
        parts = {name: _with_held_out(task, items, given.get(name), user) for name, items in checked.items()}
        train = {name: part for name, (part, _) in parts.items()}
        return train, {**{name: part for name, (_, part) in parts.items()}, **given}
    if valid is not None:
        return train, valid
    if user.incomplete:
        raise ValueError("`incomplete` needs `valid`, in which all entities are marked. Received: valid=None")
    items = task.check("train", train)
    if len(items) < 2:
        raise ValueError(f"`train` needs two items to hold one out for `valid`. Received: {len(items)}")
    return task.hold_out(items, user.seed)

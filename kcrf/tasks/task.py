"""`Task`: what a model can learn, with the defaults of the tasks that tag sentences. Needs NumPy only."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kcrf.corpora import Sentence, entity_types, sample, split
from kcrf.corpora.conll import join_tokens
from kcrf.progress_bars import print_note
from kcrf.readers import Reader, tags_of_units
from kcrf.readers.units import with_copies
from kcrf.tags import TagScheme
from kcrf.tasks.errors import SettingError
from kcrf.tasks.forms import items_of

Items = list[Any]  # `kcrf.corpora.Sentence`s or `kcrf.corpora.Example`s; in files of segmented text lists of words
FileOptions = Mapping[str, Any]  # a value for each of the `file_options` of the task
Words = Collection[str] | None


@dataclass(frozen=True)
class DataFacts:
    """The facts about its training data and its device on which a run depends."""

    types: tuple[str, ...] = ()  # the entity types in the order of their tags
    labels: tuple[str, ...] = ()  # of texts, in their order; empty for regression
    units: str | None = None  # "words" or "characters" for entities from scratch
    pairs: bool = False  # whether texts come in pairs
    multilabel: bool = False  # whether a text can have several labels, or none
    mean: float = 0.0  # of labels that are numbers
    deviation: float = 1.0  # their standard deviation
    standards: tuple[str, ...] = ()  # the segmentation standards in their order, if there are several
    metric: str | None = None  # the score that chooses the best epoch, unless the user has chosen one
    items: int = 0  # sentences or texts in the training set, without copies
    windows: int = 1  # windows of up to 128 positions in the training set
    steps: int = 1  # batches of an epoch
    precision: str = "float32"  # the best one for a BERT on the device


class Task(ABC):
    """A task that a model can learn: its settings, its data, its labels and its scores. By default, an item is a
    `Sentence`, and the model gives a tag to each unit of its text. `data` is a `kcrf.runs.DataConfig` with the types or
    labels, `config` a `kcrf.runs.RunConfig`."""

    name: str  # as for `kcrf train --task`
    output: Literal["tags", "label"] = "tags"  # for the tokens of a text, or for the text
    items = "sentences"  # the name of its items in the plural
    command = "tag"  # the command that uses its models
    needs_tokens = False  # whether its models need texts that are split into tokens
    has_word_classes = False  # whether its models predict words and their classes
    is_extensible = False  # whether types can be added to its finished models
    settings: frozenset[str] = frozenset()  # that not all tasks have
    defaults: Mapping[str, Any]  # its own defaults of settings
    choices: Mapping[str, tuple[Any, ...]]  # its own choices of settings
    file_options: frozenset[str]  # the command-line options for reading its files
    adagrad: Mapping[str, float] = {"learning_rate": 0.1, "l1": 0.01, "damping": 0.1}  # empty: no linear models
    linear_weight: float | str = 0.0  # of a linear model in the average with a network, or "auto"
    without_lexicon = 0.0  # the weight of a part of its linear models that is trained without the lexicon
    augment_by: str | None = None  # how small datasets of characters are augmented by default

    @abstractmethod
    def read_file(self, path: str, options: FileOptions) -> Items:
        """The items of a file, without empty sentences."""

    @abstractmethod
    def file_lines(self, items: Items) -> list[str]:
        """The lines of a file with these items, which `read_file` reads."""

    @abstractmethod
    def read_scored(self, path: str, options: FileOptions, is_gold: bool) -> Items:
        """The items of a file to score, empty ones included. Without `is_gold`, a command may have written it."""

    @abstractmethod
    def scores(self, gold: Items, predicted: Items, words: Words = None, labels: Sequence[str] = ()) -> dict[str, Any]:
        """The scores of predictions, with the keys of a function of `kcrf.metrics`. Raises MismatchError if the texts
        of gold and prediction differ. `words` are the in-vocabulary words."""

    def unlabeled_items(self, texts: Sequence[Any], pairs: bool) -> Items:
        """Converts unlabeled texts to items without labels."""
        return [Sentence("".join(text.split()), []) for text in texts]

    def read_unlabeled_line(self, line: str) -> Any:
        """The text, or the pair of texts, in a line of a file of unlabeled text."""
        return line

    def check(self, name: str, items: Any) -> Items:
        """Checks the items of a part, and converts them to `Sentence`s or `Example`s; see `kcrf.tasks.forms`."""
        items = items_of(self.name, name, items)
        sentences = [self.as_sentence(f"`{name}`, sentence {number}", item) for number, item in enumerate(items, 1)]
        if not any(sentence.text for sentence in sentences):
            raise ValueError(f"`{name}` needs at least one sentence with words. Received: {len(items)} empty sentences")
        return sentences

    def as_sentence(self, source: str, item: Any) -> Sentence:
        """The `Sentence` of an item. Raises ValueError, which names the source, if the item is not valid."""
        if not isinstance(item, Sentence):
            raise ValueError(f"{source}: needs a `Sentence` or (text, spans). Received: {str(item)[:80]!r}")
        return item

    def copies(self, items: list[Items]) -> list[Items]:
        """Augmented copies as `Sentence`s or `Example`s."""
        return [[self.as_sentence("a copy", copy) for copy in copies] for copies in items]

    def content(self, items: Items) -> list[Any]:
        """The texts and labels, by whose hash a run checks that it resumes with the same data."""
        return [(s.text, s.spans, s.unknown) if s.unknown else (s.text, s.spans) for s in items]

    def labels_to_balance(self, items: Items) -> list[str] | None:
        """The label of each item if a sample should keep the proportions of the labels, else None."""
        return None

    def hold_out(self, items: Items, seed: int) -> tuple[Items, Items]:
        """Splits items into nine tenths for training and a tenth for validation."""
        labels = self.labels_to_balance(items)
        if labels is None:
            return split(items, 0.1, seed)
        return sample(items, len(items) - max(1, len(items) // 10), seed, labels)

    def vocabulary_text(self, item: Any) -> str:
        """The text of an item, from whose characters the vocabulary is made."""
        return item.text

    def texts(self, items: Items) -> tuple[list[str], list[Any] | None]:
        """The texts of items as a reader takes them, and their tokens or None."""
        return [sentence.text for sentence in items], [sentence.tokens for sentence in items]

    def facts(self, user: Any, parts: Mapping[str, Items]) -> DataFacts:
        """The facts that the data of a run decide."""
        return DataFacts()

    def windows(
        self, data: Any, facts: DataFacts, reader: Reader, items: Items, copies: Any = None, whole_spans: bool = False
    ) -> list[Any]:
        """The windows of the training set with their targets. An item is followed by its augmented copies."""
        readings, sentences = reader.read_training(items, copies), with_copies(items, copies)
        return tagged_windows(sentences, readings, data.tag_scheme(), whole_spans)

    def unlabeled_windows(self, data: Any, reader: Reader, items: Items) -> list[Any]:
        """The windows of unlabeled items, with unknown targets. The lexicon learns spans, if there are any."""
        has_spans = any(sentence.spans for sentence in items)
        readings = reader.read_training(items) if has_spans else reader.read(*self.texts(items))
        return [(window.inputs, [-1] * window.length) for reading in readings for window in reading.windows]

    def predicted_items(self, predictions: list[dict[str, Any]], member: str) -> Items:
        """The items of the "predictions.jsonl" of a run, as `scores` takes them."""
        sentences = []
        for item in predictions:
            spans = sorted(tuple(span[:3]) for span in item[member])
            sentences.append(Sentence(item["text"], spans, sorted(tuple(span[:2]) for span in item["gold"])))
        return sentences

    def outputs(self, data: Any) -> tuple[str, ...]:
        """The labels of the outputs of a model, in their order; an empty tuple for regression."""
        return data.tag_scheme().labels

    def describe(self, config: Any) -> tuple[str, str]:
        """Two parts of the line that `kcrf.runs.describe_run` returns: the labels that are learned, and the head."""
        constraints = f" {'with' if config.model.constraints else 'without'} constraints"
        head = config.model.head + constraints * (config.model.head == "crf")
        units = f" of {config.data.units}" if config.data.units else ""
        return f"{units}, {len(self.outputs(config.data))} tags", head


def as_sentence(item: Any, source: str = "A sentence") -> Sentence:
    """A `Sentence`, made from a list of words if it is not one. Raises ValueError, which names the source."""
    if isinstance(item, Sentence):
        return item
    is_list = isinstance(item, Iterable) and not isinstance(item, str)
    if not is_list or not all(isinstance(word, str) and word.split() == [word] for word in item):
        raise ValueError(f"{source}: needs a list of words without white space. Received: {str(item)[:80]!r}")
    return Sentence(*join_tokens(list(item), join_all=True))


def types_of(user: Any, parts: Mapping[str, list[Any]], noun: str, verdict: str) -> tuple[str, ...]:
    """The types in the settings, or else in the training set. Notes types of other parts that are missing."""
    learned = entity_types(parts["train"])
    types = tuple(user.types or learned)
    if missing := sorted(set(learned) - set(types)):
        raise SettingError("types", f"must have all types of the training set, also {', '.join(missing)}", types)
    for name, part in parts.items():
        unseen = Counter(label for sentence in part for *_, label in sentence.spans if label not in types)
        if unseen:
            counts = ", ".join(f"{label} ({count})" for label, count in sorted(unseen.items()))
            print_note(f"{name}: {noun} that the training set lacks count as {verdict}: {counts}")
    return types


def tagged_windows(sentences: Items, readings: Items, scheme: TagScheme, whole_spans: bool = False) -> list[Any]:
    """Every window of every sentence, with its tags: -1 where a position has no tag, or an unknown tag. With
    `whole_spans`, the tags of a span that a window cuts off are unknown: constraints forbid to begin inside a word."""
    windows = []
    for sentence, reading in zip(sentences, readings, strict=True):
        tags = tags_of_units(scheme, reading.units, sentence.spans, sentence.unknown)
        for window in reading.windows:
            unit_tags = tags[window.first : window.first + len(window.positions)]
            if whole_spans:
                unit_tags = _without_cut_spans(scheme, unit_tags)
            tags_of_window = np.full(window.length, -1)
            tags_of_window[window.positions] = unit_tags
            windows.append((window.inputs, tags_of_window.tolist()))
    return windows


def _without_cut_spans(scheme: TagScheme, tags: Any) -> Any:
    """The tags of a window. Tags of spans that begin before the window or end after it become -1."""
    tags = np.array(tags, int)  # (units,)
    opens = np.flatnonzero((tags < 0) | scheme.allowed_starts[tags])
    if len(tags) and tags[0] >= 0 and not scheme.allowed_starts[tags[0]]:
        tags[: opens[0] if len(opens) else None] = -1
    if len(tags) and tags[-1] >= 0 and not scheme.allowed_ends[tags[-1]]:
        tags[opens[-1] if len(opens) else 0 :] = -1
    return tags

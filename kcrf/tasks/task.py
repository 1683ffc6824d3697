"""`Task`: what a model can learn, with the defaults of the tasks that tag sentences. Needs NumPy only."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Literal

import numpy as np

from kcrf.corpora import Sentence, entity_types, split
from kcrf.progress_bars import print_note
from kcrf.readers import Reader, tags_of_units
from kcrf.readers.units import with_copies
from kcrf.tags import TagScheme
from kcrf.tasks.errors import SettingError

Items = list[Any]  # `kcrf.corpora.Sentence`s or `kcrf.corpora.Example`s; in files of segmented text lists of words
FileOptions = Mapping[str, Any]  # a value for each of the `file_options` of the task
Words = Collection[str] | None


@dataclass(frozen=True)
class DataFacts:
    """The facts about its training data on which a run depends.

    Attributes:
        types: The entity types in the order of their tags.
        labels: The labels of texts in their order; empty for regression.
        units: "words" or "characters" for entities from scratch, else None.
        pairs: Whether texts come in pairs.
        mean, deviation: Of labels that are numbers: their mean and their standard deviation.
        standards: The segmentation standards in their order, where there are several.
        metric: The score of a classifier by which the best epoch is chosen, unless the user has chosen it.
        items: How many sentences or texts the training set has, without copies.
        windows: How many windows of up to 128 positions the training data have. Most sentences are one window.
        steps: How many batches an epoch has.
    """

    types: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    units: str | None = None
    pairs: bool = False
    mean: float = 0.0
    deviation: float = 1.0
    standards: tuple[str, ...] = ()
    metric: str | None = None
    items: int = 0
    windows: int = 1
    steps: int = 1


class Task(ABC):
    """A task that a model can learn: its settings, its data, its labels and its scores.

    By default, an item is a `Sentence`, and the model gives a tag to each unit of its text. `data` is a
    `kcrf.runs.DataConfig` with the types or labels, `config` a `kcrf.runs.RunConfig`.

    Attributes:
        name: Its name, as for `kcrf train --task`.
        output: The output of its models: "tags" for the tokens of a text, or a "label" for the text.
        items: The name of its items in the plural.
        command: The command that uses its models, such as "segment".
        needs_tokens: Whether its models need texts that are split into tokens.
        has_word_classes: Whether its models predict words and their classes.
        is_extensible: Whether types can be added to its finished models.
        settings: The settings of this task that not all tasks have.
        defaults: Its own defaults of settings.
        choices: Its own choices of settings, if they differ from those of other tasks.
        file_options: The command-line options for reading its files.
        adagrad: The learning rate, the L1 penalty and the damping of its linear models if AdaGrad trains them; empty if
            it has no linear models.
        linear_weight: The default weight of a linear model in the average with a network, or "auto".
        without_lexicon: The weight of a model that is trained without the lexicon, in its linear models.
        augment_by: How small datasets of characters are augmented by default, or None.
    """

    name: str
    output: Literal["tags", "label"] = "tags"
    items = "sentences"
    command = "tag"
    needs_tokens = False
    has_word_classes = False
    is_extensible = False
    settings: frozenset[str] = frozenset()
    defaults: Mapping[str, Any]
    choices: Mapping[str, tuple[Any, ...]]
    file_options: frozenset[str]
    adagrad: Mapping[str, float] = {"learning_rate": 0.1, "l1": 0.01, "damping": 0.1}
    linear_weight: float | str = 0.0
    without_lexicon = 0.0
    augment_by: str | None = None

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
        """The scores of predictions, with the keys of a function of `kcrf.metrics`.

        Args:
            gold, predicted: Items of `read_scored` or `predicted_items`.
            words: The words of the training set, for scores of words that are in it and that are not. Defaults to None:
                no such scores.
            labels: The labels of the classifier, in their order. Defaults to the labels in the items.

        Raises:
            MismatchError: The texts of gold and prediction differ.
        """

    @abstractmethod
    def unlabeled_items(self, texts: Sequence[Any], pairs: bool) -> Items:
        """Converts unlabeled texts to items without labels.

        Args:
            texts: Strings, or pairs of strings.
            pairs: Whether the texts must be pairs.

        Raises:
            ValueError: A text is not a pair although it must be, or is one although it must not be.
        """

    def read_unlabeled_line(self, line: str) -> Any:
        """The text, or the pair of texts, in a line of a file of unlabeled text."""
        return line

    def check(self, name: str, items: Sequence[Any]) -> Items:
        """Checks the items of a part, and converts them to `Sentence`s or `Example`s.

        Args:
            name: The name of the part, such as "train", for messages.
            items: Items of `read_file`, or what users pass to `train_tagger`.

        Raises:
            ValueError: An item is not valid, or there is no item with a text.
        """
        sentences = [self.as_sentence(f"`{name}`, sentence {number}", item) for number, item in enumerate(items, 1)]
        if not any(sentence.text for sentence in sentences):
            raise ValueError(f"`{name}` needs at least one sentence with words. Received: {len(items)} empty sentences")
        return sentences

    def as_sentence(self, source: str, item: Any) -> Sentence:
        """The `Sentence` of an item. Raises ValueError, which names the source, if the item is not valid."""
        if not isinstance(item, Sentence):
            raise ValueError(f"{source}: needs a `Sentence`. Received: {str(item)[:80]!r}")
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
        return split(items, 0.1, seed)

    def vocabulary_text(self, item: Any) -> str:
        """The text of an item, from whose characters the vocabulary is made."""
        return item.text

    def texts(self, items: Items) -> tuple[list[str], list[Any] | None]:
        """The texts of items as a reader takes them, and their tokens or None."""
        return [sentence.text for sentence in items], [sentence.tokens for sentence in items]

    def facts(self, user: Any, parts: Mapping[str, Items]) -> DataFacts:
        """The facts that the data of a run decide.

        Args:
            user: The `kcrf.runs.Settings`.
            parts: The items of "train", "valid" and maybe "test".

        Raises:
            ValueError: The parts contradict each other or the settings.
        """
        return DataFacts()

    def windows(
        self, data: Any, facts: DataFacts, reader: Reader, items: Items, copies: Any = None, whole_spans: bool = False
    ) -> list[Any]:
        """The windows of the training set with their targets, those of each item followed by those of its copies.

        Args:
            data: The `DataConfig`.
            facts: The `DataFacts`.
            reader: The reader of the model.
            items: The items.
            copies: For each item a list of its augmented copies. Defaults to None: there are none.
            whole_spans: For tags: whether the tags of a span that a window cuts off are unknown. Defaults to False.
        """
        readings, sentences = reader.read_training(items, copies), with_copies(items, copies)
        return tagged_windows(sentences, readings, data.tag_scheme(), whole_spans)

    def unlabeled_windows(self, data: Any, reader: Reader, items: Items) -> list[Any]:
        """The windows of unlabeled items, with unknown targets. The lexicon learns spans, if there are any."""
        has_spans = any(sentence.spans for sentence in items)
        readings = reader.read_training(items) if has_spans else reader.read(*self.texts(items))
        return [(window.inputs, [-1] * window.length) for reading in readings for window in reading.windows]

    def predicted_items(self, predictions: list[dict[str, Any]], member: str) -> Items:
        """The items of the "predictions.jsonl" of a run, as `scores` takes them.

        Args:
            predictions: The objects of the file.
            member: "gold" for the correct labels, "found" for the predicted ones.
        """
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
    ends = list(accumulate(map(len, item), initial=0))
    return Sentence("".join(item), list(pairwise(ends)))


def types_of(user: Any, parts: Mapping[str, list[Any]], noun: str, verdict: str) -> tuple[str, ...]:
    """The types in the settings, or else those of the training set. Notes the types of other parts that are missing.

    Args:
        user: The `kcrf.runs.Settings`.
        parts: The `Sentence`s of "train", "valid" and maybe "test".
        noun: The spans of a missing type in the note, such as "tags".
        verdict: How the scores count them, such as "wrong".

    Raises:
        SettingError: The training set has a type that those in the settings lack.
    """
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
    """Every window of every sentence, with its tags.

    Args:
        sentences: List of `kcrf.corpora.Sentence`.
        readings: The `kcrf.readers.Reading` of each.
        scheme: A `TagScheme`.
        whole_spans: Whether the tags of a span that a window cuts off are unknown. A CRF with constraints needs that,
            because its constraints forbid sequences that begin inside a word. Defaults to False.

    Returns:
        A list of `(inputs, tags)`: a dict of integer arrays, and a list of ints of the same length. The tag is -1 where
        a position has no tag, or an unknown tag.
    """
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
    """The tags of a window, with -1 for those of spans that begin before the window or end after it."""
    tags = np.array(tags, int)  # (units,)
    opens = np.flatnonzero((tags < 0) | scheme.allowed_starts[tags])
    if len(tags) and tags[0] >= 0 and not scheme.allowed_starts[tags[0]]:
        tags[: opens[0] if len(opens) else None] = -1
    if len(tags) and tags[-1] >= 0 and not scheme.allowed_ends[tags[-1]]:
        tags[opens[-1] if len(opens) else 0 :] = -1
    return tags

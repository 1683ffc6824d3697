"""`TaggingTask`: the base of the tasks with a tag for each token of a text. Needs NumPy only."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, Literal

import numpy as np

from kcrf.corpora import Sentence, entity_types, split
from kcrf.progress_bars import print_note
from kcrf.readers import Reader, tags_of_units
from kcrf.readers.units import with_copies
from kcrf.tags import TagScheme
from kcrf.tasks.errors import SettingError
from kcrf.tasks.facts import DataFacts


class TaggingTask:
    """Base of the tasks whose items are `Sentence`s and whose model gives tags."""

    output: Literal["tags", "label"] = "tags"
    items = "sentences"
    command = "tag"
    needs_tokens = False
    has_word_classes = False
    is_extensible = False
    adagrad: Mapping[str, float] = {"learning_rate": 0.1, "l1": 0.01, "damping": 0.1}
    linear_weight: float | str = 0.0
    without_lexicon = 0.0
    augment_by: str | None = None

    def read_unlabeled_line(self, line: str) -> Any:
        """The line."""
        return line

    def check(self, name: str, items: Sequence[Any]) -> list[Any]:
        """The items of a part as `Sentence`s. Raises ValueError if one is none, or if none has a text."""
        sentences = [self.as_sentence(f"`{name}`, sentence {number}", item) for number, item in enumerate(items, 1)]
        if not any(sentence.text for sentence in sentences):
            raise ValueError(f"`{name}` needs at least one sentence with words. Received: {len(items)} empty sentences")
        return sentences

    def as_sentence(self, source: str, item: Any) -> Sentence:
        """The item. Raises ValueError, which names the source, if it is not a `Sentence`."""
        if not isinstance(item, Sentence):
            raise ValueError(f"{source}: needs a `Sentence`. Received: {str(item)[:80]!r}")
        return item

    def copies(self, items: list[list[Any]]) -> list[list[Any]]:
        """Augmented copies as `Sentence`s."""
        return [[self.as_sentence("a copy", copy) for copy in copies] for copies in items]

    def content(self, sentences: list[Any]) -> list[Any]:
        """The texts and their spans."""
        return [(s.text, s.spans, s.unknown) if s.unknown else (s.text, s.spans) for s in sentences]

    def labels_to_balance(self, sentences: list[Any]) -> list[str] | None:
        """None: sentences have no labels whose proportions a sample should keep."""
        return None

    def hold_out(self, sentences: list[Any], seed: int) -> tuple[list[Any], list[Any]]:
        """Nine tenths and a tenth of the sentences."""
        return split(sentences, 0.1, seed)

    def vocabulary_text(self, sentence: Any) -> str:
        """The text of a sentence."""
        return sentence.text

    def texts(self, sentences: list[Any]) -> tuple[list[str], list[Any] | None]:
        """The texts of sentences, and their tokens."""
        return [sentence.text for sentence in sentences], [sentence.tokens for sentence in sentences]

    def facts(self, user: Any, parts: Mapping[str, list[Any]]) -> DataFacts:
        """No facts."""
        return DataFacts()

    def windows(
        self,
        data: Any,
        facts: DataFacts,
        reader: Reader,
        sentences: list[Any],
        copies: Any = None,
        whole_spans: bool = False,
    ) -> list[Any]:
        """The windows of sentences and their copies, with their tags."""
        readings, sentences = reader.read_training(sentences, copies), with_copies(sentences, copies)
        return tagged_windows(sentences, readings, data.tag_scheme(), whole_spans)

    def unlabeled_windows(self, data: Any, reader: Reader, sentences: list[Any]) -> list[Any]:
        """The windows of sentences with unknown tags. Spans, if there are any, are those of the lexicon."""
        has_spans = any(sentence.spans for sentence in sentences)
        readings = reader.read_training(sentences) if has_spans else reader.read(*self.texts(sentences))
        return [(window.inputs, [-1] * window.length) for reading in readings for window in reading.windows]

    def predicted_items(self, predictions: list[dict[str, Any]], member: str) -> list[Any]:
        """The `Sentence`s of the texts. Their tokens are the gold spans."""
        sentences = []
        for item in predictions:
            spans = sorted(tuple(span[:3]) for span in item[member])
            sentences.append(Sentence(item["text"], spans, sorted(tuple(span[:2]) for span in item["gold"])))
        return sentences

    def outputs(self, data: Any) -> tuple[str, ...]:
        """The labels of the tags."""
        return data.tag_scheme().labels

    def describe(self, config: Any) -> tuple[str, str]:
        """The number of tags, and the head with its constraints."""
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


def tagged_windows(
    sentences: list[Any], readings: list[Any], scheme: TagScheme, whole_spans: bool = False
) -> list[Any]:
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

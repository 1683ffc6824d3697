"""Units and windows of texts. Units are what tags belong to: characters, or words."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from copy import copy
from functools import cache
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from kcrf.corpora import Sentence
from kcrf.readers.vectors import WordVectors
from kcrf.tags import TagScheme

Item = TypeVar("Item")
Copies = Sequence[Sequence[Any]] | None  # the augmented copies of each item
Texts = Sequence[tuple[str, str | None]]  # each with the second text of a pair
Tokens = Sequence[Sequence[tuple[int, int]]] | None  # of each text, in characters; may be empty


class Window(NamedTuple):
    """A part of a text, as the model reads it. Units outside of `keep` are context: other windows decide their tags."""

    inputs: dict[str, Any]  # rows of integers, or of integer vectors, with the same length
    positions: np.ndarray  # (units,), the position of each unit in the inputs, ascending
    first: int  # the index of its first unit in the text
    keep: tuple[int, int]  # the indices of the units whose tags this window decides, half-open

    @property
    def length(self) -> int:
        """The number of positions of the inputs."""
        return len(next(iter(self.inputs.values())))

    def kept(self, rows: np.ndarray) -> np.ndarray:
        """Selects the rows of the units in `keep` from an array with a row for each position."""
        start, stop = self.keep
        return rows[self.positions[start - self.first : stop - self.first]]


class Reading(NamedTuple):
    """The units of a text, `(units, 2)`, half-open, and its windows, whose kept units are consecutive and all units."""

    units: np.ndarray
    windows: list[Window]
    is_cut: bool = False  # whether the windows of a text that is classified lack its end


class Reader(ABC):
    """Splits texts into units and windows, and computes the inputs of a model for each window."""

    vectors: WordVectors | None = None

    @abstractmethod
    def read(self, texts: Sequence[str], tokens: Tokens = None) -> list[Reading]:
        """The `Reading` of each text. `tokens` has the `(start, end)` of its tokens, for readers of tokens."""

    def read_training(self, sentences: Sequence[Sentence], copies: Copies = None) -> list[Reading]:
        """The `Reading` of each sentence of the training set, followed by the readings of its augmented copies."""
        sentences = with_copies(sentences, copies)
        return self.read([sentence.text for sentence in sentences], [sentence.tokens for sentence in sentences])

    def read_texts(self, texts: Texts, max_length: int, whole: bool = False) -> list[Reading]:
        """The `Reading` of each text or pair, truncated to `max_length` positions, in a pair the longer text first.

        If `whole`, further windows contain what was cut from a single text.
        """
        raise NotImplementedError("texts that are classified are read by a CharacterReader or a PieceReader")

    def with_vectors(self, vectors: WordVectors | None) -> Self:
        """The same reader with word vectors as an input."""
        return self.changed(vectors=vectors)

    def changed(self, **attributes: Any) -> Self:
        """The same reader with other attributes."""
        other = copy(self)
        vars(other).update(attributes)
        return other

    @abstractmethod
    def get_config(self) -> dict[str, Any]:
        """A dict of plain values from which `from_config` of the class creates the reader, without word vectors."""


def tags_of_units(
    scheme: TagScheme, units: np.ndarray, spans: Sequence[Any], unknown: Iterable[tuple[int, int]] = ()
) -> list[int]:
    """Converts spans, in characters, to a tag for each unit of a text. A span without a unit is omitted.

    A tag is -1 (unknown) if a span begins or ends inside the unit, or if `unknown` overlaps it.
    """
    tags, cut = [scheme.outside] * len(units), []
    firsts = np.searchsorted(units[:, 1], [span[0] for span in spans], side="right").tolist()
    stops = np.searchsorted(units[:, 0], [span[1] for span in spans], side="left").tolist()
    inside = cache(lambda length, *label: scheme.encode([(0, length, *label)], length))
    for (start, end, *label), first, stop in zip(spans, firsts, stops, strict=True):
        if first < stop:
            tags[first:stop] = inside(stop - first, *label)
            cut += [first] if units[first, 0] < start else []
            cut += [stop - 1] if units[stop - 1, 1] > end else []
    for start, end in unknown:
        cut += np.flatnonzero((units[:, 0] < end) & (start < units[:, 1])).tolist()
    for unit in cut:
        tags[unit] = -1
    return tags


def spans_of_units(scheme: TagScheme, units: np.ndarray, spans: Sequence[Any], length: int) -> list[Any]:
    """Converts spans of units, the result of `scheme.decode`, to spans of characters of a text of some length.

    Words cover the text: characters between two units belong to the preceding word. An entity ends with its last unit.
    A text without units is one word, with the class "?" if words have classes.
    """
    if not scheme.is_of_words:
        return [(int(units[start, 0]), int(units[end - 1, 1]), label) for start, end, label in spans]
    if not spans:
        return [(0, length, "?") if scheme.types else (0, length)] if length else []
    starts = [0, *units[[start for start, *_ in spans[1:]], 0].tolist(), length]
    return [(start, end, *label) for start, end, (_, _, *label) in zip(starts, starts[1:], spans)]


def with_copies(items: Sequence[Item], copies: Copies = None) -> list[Item]:
    """A list with each item followed by its augmented copies."""
    pairs = zip(items, copies or [()] * len(items), strict=True)
    return [x for item, own in pairs for x in (item, *own)]

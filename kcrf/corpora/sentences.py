"""`Sentence`: a text with its words, its entities or the classes of its tokens. Some may be unknown."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

UNKNOWN = ("?", "-1")
_BEGINS, _CLOSED = "OBSU", "OESLU"  # first letters of the tags that begin, and that end, outside or a whole entity


@dataclass(frozen=True)
class Sentence:
    """A text with its entities, words, or tokens with their classes.

    Spans are half-open, in characters of the text, sorted, and without overlaps; anything else is a ValueError.

    Attributes:
        text: A string.
        spans: A list of `(start, end, label)` for entities, or tokens with a known class; for words without a label.
        tokens: A list of `(start, end)` for the tokens. Defaults to an empty list.
        unknown: A list of `(start, end)` for the text whose labels are unknown, without spans. Training marginalizes
            the tags there, and predictions there are not scored. Defaults to an empty list.
        standard: The segmentation standard of the words, where a model learns several. Defaults to None: there is one.
    """

    text: str
    spans: list
    tokens: list = field(default_factory=list)
    unknown: list = field(default_factory=list, repr=False)
    standard: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in ("spans", "tokens", "unknown"):
            last = 0
            for start, end, *_ in getattr(self, name):
                if not last <= start < end <= len(self.text):
                    raise ValueError(
                        f"A sentence needs `{name}` in order, apart and within its {len(self.text)} characters. "
                        f"Received: ({start}, {end}) after one that ends at {last}"
                    )
                last = end

    def texts_of(self, spans: Iterable[Any]) -> list[str]:
        """The text of each span, `(start, end, ...)`."""
        return [self.text[start:end] for start, end, *_ in spans]

    def scored(self, predicted: Iterable[Any]) -> list[Any]:
        """The predicted spans, `(start, end, label, ...)`, that can be scored: in `spans`, or apart from unknown text.

        >>> sentence = Sentence("Kim saw Ada", [(0, 3, "PER")], unknown=[(8, 11)])
        >>> sentence.scored([(0, 3, "LOC"), (8, 11, "PER")])
        [(0, 3, 'LOC')]
        """
        if not self.unknown:
            return list(predicted)
        gold = set(self.spans)
        return [
            span
            for span in predicted
            if tuple(span[:3]) in gold or not any(start < span[1] and span[0] < end for start, end in self.unknown)
        ]


def entity_types(sentences: Iterable[Sentence]) -> tuple[str, ...]:
    """The labels that occur in sentences, a sorted tuple for `kcrf.tags.bio`.

    >>> entity_types([Sentence("李雷住在上海", [(0, 2, "PER"), (4, 6, "LOC")])])
    ('LOC', 'PER')
    """
    return tuple(sorted({label for sentence in sentences for _, _, label in sentence.spans}))


def for_each_group(keys: Sequence[Any], compute: Callable[..., Iterable[Any]], *columns: Sequence[Any]) -> list[Any]:
    """The values, in the order of the keys, of a function of each key and the rows of the columns that have it."""
    groups: dict[Any, list[int]] = {}
    for number, key in enumerate(keys):
        groups.setdefault(key, []).append(number)
    values: list[Any] = [None] * len(keys)
    for key, numbers in groups.items():
        rows = ([column[number] for number in numbers] for column in columns)
        for number, value in zip(numbers, compute(key, *rows), strict=True):
            values[number] = value
    return values


def known_runs(sentences: Iterable[Sequence[tuple[Any, ...]]]) -> list[list[tuple[int, list[Any]]]]:
    """The stretches of known tags of the sentences of a file, without pieces of entities that unknown tags cut off."""
    marks_ends = any(tag[0] in "ESLUM" for rows in sentences for *_, tag in rows)
    return [_runs(rows, marks_ends) for rows in sentences]


def _runs(rows: Sequence[tuple[Any, ...]], marks_ends: bool) -> list[tuple[int, list[Any]]]:
    borders = [-1, *(i for i, (*_, tag) in enumerate(rows) if tag in UNKNOWN), len(rows)]
    runs = []
    for before, after in zip(borders, borders[1:]):
        first, stop = before + 1, after
        while before >= 0 and first < stop and rows[first][2][0] not in _BEGINS:
            first += 1
        if marks_ends and after < len(rows) and first < stop and rows[stop - 1][2][0] not in _CLOSED:
            while first < stop and rows[stop - 1][2][0] not in _BEGINS:
                stop -= 1
            stop = max(first, stop - 1)
        runs += [(first, list(rows[first:stop]))] if first < stop else []
    return runs


def unknown_parts(rows: Sequence[Any], runs: Iterable[tuple[int, Sequence[Any]]]) -> list[tuple[int, int]]:
    """The `(start, end)`, in tokens, of a sentence outside of its known runs."""
    return outside_spans([(first, first + len(run)) for first, run in runs], [(0, len(rows))])


def outside_spans(spans: Iterable[Sequence[Any]], parts: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The parts without what spans cover."""
    pieces, spans, number = [], list(spans), 0
    for start, end in parts:
        while number < len(spans) and spans[number][1] <= start:
            number += 1
        for begin, stop, *_ in islice(spans, number, None):
            if begin >= end:
                break
            pieces += [(start, begin)] if start < begin else []
            start = stop
        pieces += [(start, end)] if start < end else []
    return pieces

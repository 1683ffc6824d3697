"""Constraints on the spans of a text: words and entities that the user provides. Needs NumPy only."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from kcrf.tags import TagScheme

_LETTERS, _DIGITS = "A-Za-zÀ-ÖØ-öø-ɏḀ-ỿＡ-Ｚａ-ｚ", "0-9０-９"
_MARKS = "\u0300-\u036f"  # accents after their letter, as in decomposed text
_JOINED = "\u200d\ufe00-\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e01ef"  # to what precedes, as skin tones
_LATIN_RUN = re.compile(
    f"[{_LETTERS}{_DIGITS}](?:[{_LETTERS}{_DIGITS}{_MARKS}]|(?<=[{_DIGITS}])[.．](?=[{_DIGITS}])|['’](?=[{_LETTERS}]))+"
    f"|[\U0001f1e6-\U0001f1ff]{{2}}|\\S(?:[{_JOINED}]|(?<=\u200d)\\S)+"
)


class SpanConstraints(NamedTuple):
    """Constraints on the spans of a text, each from left to right. The class of a word without a label is open."""

    spans: list[Any]  # words or entities that the text contains: `(start, end)` or `(start, end, label)`
    unbroken: list[Any]  # stretches `(start, end)` without a word boundary inside
    outside: Sequence[Any] = ()  # stretches `(start, end)` without an entity
    types: tuple[str, ...] | None = None  # that other entities may have; None allows all


def latin_runs(text: str) -> list[tuple[int, int]]:
    """The Latin words, numbers and emoji of two characters or more: also a point between digits, combining accents.

    >>> latin_runs("用Python3写3.14行")
    [(1, 8), (9, 13)]
    """
    return [match.span() for match in _LATIN_RUN.finditer(text)]


def overlapping(spans: Sequence[Any], start: int, end: int) -> Sequence[Any]:
    """The spans that overlap `[start, end)`. The spans must be sorted, and must not overlap each other.

    >>> overlapping([(0, 2), (3, 5), (5, 9)], 4, 6)
    [(3, 5), (5, 9)]
    """
    return spans[bisect_right(spans, start, key=itemgetter(1)) : bisect_left(spans, end, key=itemgetter(0))]


def check_spans(
    spans: Iterable[Any] | None, text: Any, types: tuple[str, ...] | None = (), label_is_open: bool = False
) -> list[tuple[Any, ...]]:
    """Checks the spans and sorts them from left to right. If `types` is None, any label is allowed."""
    is_open = label_is_open and bool(types) or types is None
    form = f"(start, end, label), with {f'a label of {types}' if types else 'any label'}"
    form = (f"(start, end) or {form}" if is_open else form) if types != () else "(start, end)"
    lengths = (2, 3) if is_open else (3,) if types else (2,)
    given = [getattr(span, "key", span) for span in (() if spans is None else spans)]
    for span in given:
        is_span = isinstance(span, Sequence | np.ndarray) and len(span) in lengths
        is_span = is_span and all(isinstance(x, int | np.integer) for x in span[:2])
        if not is_span or types is not None and len(span) == 3 and span[2] not in types:
            raise ValueError(f"`spans` needs {form}. Received: {span!r}")
        if not 0 <= span[0] < span[1] <= len(text):
            raise ValueError(f"`spans` must lie in the text of {len(text)} characters. Received: {span!r}")
    checked = sorted(map(tuple, given))
    for first, second in pairwise(checked):
        if first[1] > second[0]:
            raise ValueError(f"`spans` must not overlap. Received: {first!r} and {second!r}")
    return checked


def in_units(scheme: TagScheme, units: np.ndarray, constraint: SpanConstraints, length: int) -> SpanConstraints:
    """Converts a `SpanConstraints` from characters to units of the model."""
    starts, ends = units.T
    if scheme.is_of_words:  # words cover the text: characters between two units belong to the word before
        starts, ends = np.array([0, *starts[1:]]), np.array([*starts[1:], length])
    spans = []
    for start, end, *label in constraint.spans:
        first, last = np.searchsorted(starts, start), np.searchsorted(ends, end)
        if not (starts[first : first + 1] == start).any() or not (ends[last : last + 1] == end).any():
            raise ValueError(
                "`spans` must begin and end at the boundaries of the model's tokens; WordPieces of a BERT may be "
                f"longer than a character. Received: {(start, end, *label)}"
            )
        spans.append((int(first), int(last) + 1, *label))
    firsts = np.searchsorted(units[:, 1], [start for start, _ in constraint.unbroken], side="right").tolist()
    stops = np.searchsorted(units[:, 0], [end for _, end in constraint.unbroken], side="left").tolist()
    return SpanConstraints(spans, list(zip(firsts, stops, strict=True)))


def allowed_tags(scheme: TagScheme, constraint: SpanConstraints, first: int, count: int) -> np.ndarray:
    """The tags that the units of a window may have.

    If a window cuts off a span, its part in the window counts as a whole span: valid tag sequences always remain.

    >>> from kcrf.tags import bmes
    >>> allowed = allowed_tags(bmes(), SpanConstraints([(1, 3)], []), 0, 4)
    >>> [[bmes().labels[tag] for tag in np.flatnonzero(tags)] for tags in allowed]
    [['s', 'e'], ['b'], ['e'], ['s', 'b']]
    """
    allowed = np.tile(_of_types(scheme, constraint.types), (count, 1))
    for start, end in _inside(constraint.outside, first, count):
        allowed[start:end] = _of_types(scheme, ())
    spans = _inside(constraint.spans, first, count)
    borders = {border for start, end, *_ in spans for border in (start, end)}
    for start, end, *_ in _inside(constraint.unbroken, first, count):
        for border in set(range(start + 1, end)) - borders:
            allowed[border] &= ~scheme.allowed_starts
            allowed[border - 1] &= ~scheme.allowed_ends
    for start, end, *label in spans:
        labels = [label] if label or not scheme.types else [[name] for name in scheme.types]
        tags = [scheme.encode([(0, end - start, *one)], end - start) for one in labels]  # (labels, span)
        allowed[start:end] = np.eye(len(scheme), dtype=bool)[tags].any(axis=0)
        allowed[start - 1 : start] &= scheme.allowed_ends
        allowed[end : end + 1] &= scheme.allowed_starts
    return allowed


def _of_types(scheme: TagScheme, types: tuple[str, ...] | None) -> np.ndarray:
    """Mask of the allowed tags: O and the tags of `types`; all tags if `types` is None."""
    return np.array([types is None or label == "O" or label[2:] in types for label in scheme.labels])


def write_tags(scheme: TagScheme, constraint: SpanConstraints | None, tags: Any) -> None:
    """Overwrites the tags of a text with the tags of its constraints, because windows may have cut constraints."""
    for start, end, *label in constraint.spans if constraint else ():
        if scheme.is_of_words and scheme.types and not label:
            label = [scheme.decode(tags[start:end])[0][2]]
        span_tags = scheme.encode([(0, end - start, *label)], end - start)
        tags[start:end] = np.eye(len(scheme))[span_tags] if isinstance(tags, np.ndarray) else span_tags


def _inside(spans: Sequence[Any], first: int, count: int) -> list[tuple[Any, ...]]:
    """The parts of spans that are inside a window, relative to its first unit."""
    inside = overlapping(spans, first, first + count)
    return [(max(start - first, 0), min(end - first, count), *label) for start, end, *label in inside]

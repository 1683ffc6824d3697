"""Words and entities of a text that are known before the model reads it, and what they leave open. Needs NumPy only."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

import numpy as np

__all__ = ["Known", "allowed_tags", "check_spans", "in_units", "latin_runs", "matches", "overlapping", "write_tags"]

_LETTERS, _DIGITS = "A-Za-zÀ-ÖØ-öø-ɏḀ-ỿＡ-Ｚａ-ｚ", "0-9０-９"
_MARKS = "\u0300-\u036f"  # accents after their letter, as in decomposed text
_LATIN_RUN = re.compile(
    f"[{_LETTERS}{_DIGITS}](?:[{_LETTERS}{_DIGITS}{_MARKS}]|(?<=[{_DIGITS}])[.．](?=[{_DIGITS}])|['’](?=[{_LETTERS}]))+"
)


class Known(NamedTuple):
    """What is known of a text before the model reads it.

    Attributes:
        spans: The words `(start, end)` or entities `(start, end, label)` that it has, from left to right.
        whole: Stretches `(start, end)` that no word begins or ends in.
    """

    spans: list
    whole: list


def latin_runs(text):
    """Where Latin words and numbers of at least two characters are, a list of `(start, end)`.

    A point between digits, an apostrophe before a letter and combining accents belong to them.

    >>> latin_runs("用Python3写3.14行")
    [(1, 8), (9, 13)]
    """
    return [found.span() for found in _LATIN_RUN.finditer(text)]


def overlapping(spans, start, end):
    """Those of some spans, from left to right and without overlaps, that have a position in `[start, end)`.

    >>> overlapping([(0, 2), (3, 5), (5, 9)], 4, 6)
    [(3, 5), (5, 9)]
    """
    return spans[bisect_right(spans, start, key=itemgetter(1)) : bisect_left(spans, end, key=itemgetter(0))]


def matches(text, words, lengths=None):
    """Where words of a list stand in a text: from left to right, the longest of those that begin at one place.

    Args:
        text: A string.
        words: A set of strings.
        lengths: Their lengths, the longest first, if they are looked up in many texts. Defaults to None.

    Returns:
        A list of `(start, end)` that do not overlap.

    >>> matches("南京市长江大桥", {"南京市", "市长", "长江", "长江大桥"})
    [(0, 3), (3, 7)]
    """
    lengths = sorted(set(map(len, words)), reverse=True) if lengths is None else lengths
    found, start = [], 0
    while lengths and start < len(text):
        word = next((word for word in (text[start : start + length] for length in lengths) if word in words), "")
        if word:
            found.append((start, start + len(word)))
        start += len(word) or 1
    return found


def check_spans(spans, text, types=()):
    """The spans from left to right.

    Args:
        spans: Iterable of `(start, end)`, or for entities of `(start, end, label)`, in characters. None: none.
        text: A string.
        types: The types of entities, none for words. Defaults to none.

    Raises:
        ValueError: One has another form or an unknown label, is empty or out of the text, or two overlap.
    """
    form = f"(start, end, label), with a label of {types}" if types else "(start, end)"
    spans = [] if spans is None else list(spans)
    for span in spans:
        is_span = isinstance(span, Sequence | np.ndarray) and len(span) == (3 if types else 2)
        if not is_span or not all(isinstance(x, int | np.integer) for x in span[:2]) or types and span[2] not in types:
            raise ValueError(f"`spans` needs {form}. Received: {span!r}")
        if not 0 <= span[0] < span[1] <= len(text):
            raise ValueError(f"`spans` must lie in the text of {len(text)} characters. Received: {span!r}")
    spans = sorted(map(tuple, spans))
    for first, second in pairwise(spans):
        if first[1] > second[0]:
            raise ValueError(f"`spans` must not overlap. Received: {first!r} and {second!r}")
    return spans


def in_units(scheme, units, known, length):
    """A `Known` with its spans and stretches in units of the model instead of characters.

    Args:
        scheme: A `TagScheme`.
        units: `(units, 2)`, start and end of each, in characters.
        known: A `Known` in characters.
        length: Characters of the text.

    Raises:
        ValueError: A span begins or ends inside a unit.
    """
    starts, ends = units.T
    if not scheme.types:  # words cover the text: characters between two units belong to the word before
        starts, ends = np.array([0, *starts[1:]]), np.array([*starts[1:], length])
    spans = []
    for start, end, *label in known.spans:
        first, last = np.searchsorted(starts, start), np.searchsorted(ends, end)
        if not (starts[first : first + 1] == start).any() or not (ends[last : last + 1] == end).any():
            raise ValueError(
                "`spans` must begin and end where a unit of the model does; pieces of a BERT's tokenizer may be longer "
                f"than a character. Received: {(start, end, *label)}"
            )
        spans.append((int(first), int(last) + 1, *label))
    firsts = np.searchsorted(units[:, 1], [start for start, _ in known.whole], side="right").tolist()
    stops = np.searchsorted(units[:, 0], [end for _, end in known.whole], side="left").tolist()
    return Known(spans, list(zip(firsts, stops, strict=True)))


def allowed_tags(scheme, known, first, count):
    """Which tags the units of a window may have.

    A span that a window cuts off is taken for a whole one there: then some tag sequence remains under any constraints.

    Args:
        scheme: A `TagScheme`.
        known: A `Known` in units of the text.
        first: The number of the window's first unit.
        count: Units of the window.

    Returns:
        `(count, tags)` bool.

    >>> from kcrf.tags import bmes
    >>> [[bmes().labels[tag] for tag in np.flatnonzero(row)] for row in allowed_tags(bmes(), Known([(1, 3)], []), 0, 4)]
    [['s', 'e'], ['b'], ['e'], ['s', 'b']]
    """
    allowed = np.ones((count, len(scheme)), bool)
    spans = _inside(known.spans, first, count)
    borders = {border for start, end, *_ in spans for border in (start, end)}
    for start, end, *_ in _inside(known.whole, first, count):
        for border in set(range(start + 1, end)) - borders:
            allowed[border] &= ~scheme.allowed_starts
            allowed[border - 1] &= ~scheme.allowed_ends
    for start, end, *label in spans:
        tags = scheme.encode([(0, end - start, *label)], end - start)
        allowed[start:end] = np.eye(len(scheme), dtype=bool)[tags]
        allowed[start - 1 : start] &= scheme.allowed_ends
        allowed[end : end + 1] &= scheme.allowed_starts
    return allowed


def write_tags(scheme, known, tags):
    """Writes the tags of known spans into the tags of a text: windows may have cut some of them.

    Args:
        scheme: A `TagScheme`.
        known: A `Known` in units, or None.
        tags: A list of ints, which is changed, or an array `(units, tags)` of probabilities.
    """
    for start, end, *label in known.spans if known else ():
        found = scheme.encode([(0, end - start, *label)], end - start)
        tags[start:end] = np.eye(len(scheme))[found] if isinstance(tags, np.ndarray) else found


def _inside(spans, first, count):
    """What a window contains of spans, counted from its first unit."""
    inside = overlapping(spans, first, first + count)
    return [(max(start - first, 0), min(end - first, count), *label) for start, end, *label in inside]

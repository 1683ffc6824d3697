"""The units of a text, which carry its tags: a character, or what BERT's tokenizer takes for a word."""

from functools import cache
from typing import NamedTuple

import numpy as np

__all__ = ["Reading", "Window", "spans_of_units", "tags_of_units"]


class Window(NamedTuple):
    """A stretch of a text as a model reads it.

    Attributes:
        inputs: A dict of rows of ints or of vectors of ints, all of one length.
        positions: The place in the inputs of each of its units, ascending.
        first: The number of its first unit in the text.
        keep: The numbers `(start, stop)` of the units for which this window decides.
    """

    inputs: dict
    positions: np.ndarray
    first: int
    keep: tuple


class Reading(NamedTuple):
    """A text as a reader sees it.

    Attributes:
        units: `(units, 2)`, the half-open extents of the units in the text.
        windows: The `Window`s; what they keep follows each other and covers the units.
    """

    units: np.ndarray
    windows: list


def tags_of_units(scheme, units, spans):
    """One tag for each unit of a text.

    Args:
        scheme: A `TagScheme`.
        units: `(units, 2)`, their extents.
        spans: As `scheme.encode` takes them, in characters. A span without any unit leaves no trace.

    Returns:
        A list of ints, -1 (unknown) where a span begins or ends inside a unit.

    >>> from kcrf.tags import bmes
    >>> tags_of_units(bmes(), np.array([[0, 4], [4, 5], [5, 6]]), [(0, 2), (2, 5), (5, 6)])
    [-1, 3, 0]
    """
    tags, unknown = [0] * len(units), []
    firsts = np.searchsorted(units[:, 1], [span[0] for span in spans], side="right").tolist()
    stops = np.searchsorted(units[:, 0], [span[1] for span in spans], side="left").tolist()
    inside = cache(lambda length, *label: scheme.encode([(0, length, *label)], length))
    for (start, end, *label), first, stop in zip(spans, firsts, stops, strict=True):
        if first < stop:
            tags[first:stop] = inside(stop - first, *label)
            unknown += [first] if units[first, 0] < start else []
            unknown += [stop - 1] if units[stop - 1, 1] > end else []
    for unit in unknown:
        tags[unit] = -1
    return tags


def spans_of_units(scheme, units, spans, length):
    """Spans of units as spans of characters.

    Words cover the text: what lies between two units belongs to the word before it. An entity ends with its last unit.

    Args:
        scheme: A `TagScheme`.
        units: `(units, 2)`, their extents.
        spans: What `scheme.decode` gives, in units.
        length: Characters of the text.
    """
    if scheme.types:
        return [(int(units[start, 0]), int(units[end - 1, 1]), label) for start, end, label in spans]
    if not spans:
        return [(0, length)] if length else []
    starts = [0, *units[[start for start, _ in spans[1:]], 0].tolist(), length]
    return list(zip(starts, starts[1:], strict=False))

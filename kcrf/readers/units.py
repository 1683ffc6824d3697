"""Units and windows of texts. Units are what tags belong to: characters, or words."""

from functools import cache
from typing import NamedTuple

import numpy as np


class Window(NamedTuple):
    """A part of a text, as the model reads it.

    Attributes:
        inputs: A dict of rows of integers, or of integer vectors, with the same length.
        positions: `(units,)`, the position of each unit in the inputs, ascending.
        first: The index of its first unit in the text.
        keep: `(start, stop)`, the indices of the units whose tags this window decides. Its other units are context, and
            neighboring windows decide their tags.
    """

    inputs: dict
    positions: np.ndarray
    first: int
    keep: tuple

    @property
    def length(self):
        """The number of positions of the inputs."""
        return len(next(iter(self.inputs.values())))

    def kept(self, rows):
        """Selects the rows of the units in `keep` from an array with a row for each position."""
        start, stop = self.keep
        return rows[self.positions[start - self.first : stop - self.first]]


class Reading(NamedTuple):
    """The units and windows of a text.

    Attributes:
        units: `(units, 2)`, the start and end of each unit in the text, half-open.
        windows: List of `Window`s. The units that they keep are consecutive, and together all units.
    """

    units: np.ndarray
    windows: list


def tags_of_units(scheme, units, spans, unknown=()):
    """Converts spans to a tag for each unit of a text.

    Args:
        scheme: A `TagScheme`.
        units: `(units, 2)`, the start and end of each unit.
        spans: Spans for `scheme.encode`, in characters. A span that contains no unit is omitted.
        unknown: Sorted list of the `(start, end)` of text with unknown tags, in characters. Defaults to no such text.

    Returns:
        A list of integers. A tag is -1 (unknown) if a span begins or ends inside the unit, or if `unknown` overlaps it.

    >>> from kcrf.tags import bmes
    >>> tags_of_units(bmes(), np.array([[0, 4], [4, 5], [5, 6]]), [(0, 2), (2, 5), (5, 6)])
    [-1, 3, 0]
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


def spans_of_units(scheme, units, spans, length):
    """Converts spans of units to spans of characters.

    Words cover the text: characters between two units belong to the preceding word. An entity ends with its last unit.
        A
    text without units is one word, with the class "?" if words have classes.

    Args:
        scheme: A `TagScheme`.
        units: `(units, 2)`, start and end of each.
        spans: The result of `scheme.decode`, in units.
        length: The number of characters of the text.

    Returns:
        A list of `(start, end)` or `(start, end, label)`, in characters.
    """
    if not scheme.is_of_words:
        return [(int(units[start, 0]), int(units[end - 1, 1]), label) for start, end, label in spans]
    if not spans:
        return [(0, length, "?") if scheme.types else (0, length)] if length else []
    starts = [0, *units[[start for start, *_ in spans[1:]], 0].tolist(), length]
    return [(start, end, *label) for start, end, (_, _, *label) in zip(starts, starts[1:], spans)]


def with_copies(items, copies=None):
    """A list with each item followed by its augmented copies.

    Args:
        items: A list.
        copies: For each item a list of its copies. Defaults to None: no copies.

    >>> with_copies(["a", "b"], [["A"], []])
    ['a', 'A', 'b']
    """
    return [
        x
        for item, copies_of_item in zip(items, copies or [()] * len(items), strict=True)
        for x in (item, *copies_of_item)
    ]

"""The units of a text, which carry its tags: characters, or the words of BERT's tokenizer."""

from functools import cache
from typing import NamedTuple

import numpy as np

__all__ = ["Reading", "Window", "spans_of_units", "tags_of_units", "with_copies"]


class Window(NamedTuple):
    """A stretch of a text as a model reads it.

    Attributes:
        inputs: A dict of rows of ints or of vectors of ints, all of one length.
        positions: `(units,)`, where in the inputs each of its units is, ascending.
        first: The number of its first unit, counted in the text.
        keep: The numbers `(start, stop)` of the units whose tags are taken from this window; those before and after
            them are context, and belong to its neighbors.
    """

    inputs: dict
    positions: np.ndarray
    first: int
    keep: tuple

    @property
    def length(self):
        """How many positions its inputs have."""
        return len(next(iter(self.inputs.values())))

    def kept(self, rows):
        """Of one row for each position of the window, those of the units in `keep`, an array."""
        start, stop = self.keep
        return rows[self.positions[start - self.first : stop - self.first]]


class Reading(NamedTuple):
    """A text as a reader sees it.

    Attributes:
        units: `(units, 2)`, start and end of each unit in the text, half-open.
        windows: The `Window`s. What they keep is consecutive and covers all units.
    """

    units: np.ndarray
    windows: list


def tags_of_units(scheme, units, spans, unknown=()):
    """One tag for each unit of a text.

    Args:
        scheme: A `TagScheme`.
        units: `(units, 2)`, start and end of each.
        spans: As `scheme.encode` takes them, in characters. A span that contains no unit is left out.
        unknown: `(start, end)` of text whose tags are not known, in characters, in order. Defaults to none.

    Returns:
        A list of ints, -1 (unknown) where a span begins or ends inside a unit, and for all units that touch `unknown`.

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
    """Spans of units as spans of characters.

    Words cover the text: characters between two units belong to the word before. An entity ends with its last unit. A
    text without units is one word, of the class "?" where words have classes.

    Args:
        scheme: A `TagScheme`.
        units: `(units, 2)`, start and end of each.
        spans: As `scheme.decode` returns them, in units.
        length: Characters of the text.

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
    """Each item, followed by its altered copies.

    Args:
        items: A list.
        copies: For each item a list of its copies. Defaults to None: there are none.

    >>> with_copies(["a", "b"], [["A"], []])
    ['a', 'A', 'b']
    """
    return [
        x
        for item, copies_of_item in zip(items, copies or [()] * len(items), strict=True)
        for x in (item, *copies_of_item)
    ]

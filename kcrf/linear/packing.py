"""Packs sequences of different lengths without padding: all first positions, then all second positions, and so on."""

import numpy as np


class Packing:
    """The order in which a recursion visits the positions of some sequences that lie in one array.

    Args:
        starts: `(sequences,)`, the place in the array at which each sequence begins.
        lengths: `(sequences,)`, the number of its positions, at least one.

    Attributes:
        order: The numbers of the sequences, the longest first.
        index: `(positions,)`, the place in the array of each packed position.
        steps: A list of slices of packed positions. The slice of step t has position t of each sequence that is long
            enough, in `order`.
        before, after: The packed positions of all pairs of neighbors in a sequence, two arrays.

    >>> packing = Packing([0, 2], [2, 3])
    >>> packing.order.tolist(), packing.index.tolist(), packing.steps
    ([1, 0], [2, 0, 3, 1, 4], [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)])
    """

    def __init__(self, starts, lengths):
        lengths = np.asarray(lengths)
        self.order = np.argsort(-lengths, kind="stable")
        starts, lengths = np.asarray(starts)[self.order], lengths[self.order]
        longest = int(lengths[0]) if len(lengths) else 0
        counts = np.searchsorted(-lengths, -np.arange(longest), side="left")  # (time,) sequences longer than that
        ends = np.cumsum(counts)
        time = np.repeat(np.arange(longest), counts)  # (positions,)
        sequence = np.arange(len(time)) - np.repeat(ends - counts, counts)
        self.index = starts[sequence] + time
        self.after = np.arange(len(time))[time > 0]
        self.before = self.after - counts[time[self.after] - 1]
        self.steps = [slice(end - count, end) for end, count in zip(ends.tolist(), counts.tolist(), strict=True)]

    @property
    def first(self):
        """The packed positions that begin a sequence, an array."""
        return np.arange(len(self.order))

    @property
    def last(self):
        """The packed positions that end a sequence, an array."""
        ends = np.ones(len(self.index), bool)
        ends[self.before] = False
        return np.flatnonzero(ends)

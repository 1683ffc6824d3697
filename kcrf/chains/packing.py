"""Packs sequences of different lengths without padding: all first positions, then all second positions, and so on."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np


class Packing:
    """Where some sequences are in one array of positions, and the order in which a NumPy recursion visits them.

    Each sequence has a start and a length, at least one position.

    >>> packing = Packing([0, 2], [2, 3])
    >>> packing.order.tolist(), packing.index.tolist(), packing.steps
    ([1, 0], [2, 0, 3, 1, 4], [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)])
    """

    def __init__(self, starts: Sequence[int] | np.ndarray, lengths: Sequence[int] | np.ndarray) -> None:
        self.first, self.lengths = np.asarray(starts, "int64"), np.asarray(lengths, "int64")
        self.last = self.first + self.lengths - 1

    @classmethod
    def of_lengths(cls, lengths: Sequence[int] | np.ndarray) -> "Packing":
        """The packing of sequences that follow one another without gaps."""
        lengths = np.asarray(lengths, "int64")
        return cls(np.cumsum(lengths) - lengths, lengths)

    @cached_property
    def order(self) -> np.ndarray:
        """The numbers of the sequences, the longest first."""
        return np.argsort(-self.lengths, kind="stable")

    @cached_property
    def _counts(self) -> np.ndarray:
        """For each step the number of sequences that are long enough, `(time,)`."""
        lengths = self.lengths[self.order]
        return np.searchsorted(-lengths, -np.arange(self.lengths.max(initial=0)), side="left")

    @cached_property
    def index(self) -> np.ndarray:
        """The position of each packed position, `(positions,)`."""
        counts = self._counts
        ends = np.cumsum(counts)
        time = np.repeat(np.arange(len(counts)), counts)  # (positions,)
        sequence = np.arange(len(time)) - np.repeat(ends - counts, counts)  # in `order`
        return self.first[self.order[sequence]] + time

    @cached_property
    def steps(self) -> list[slice]:
        """Slices of packed positions. The slice of step t has position t of each sequence that is long enough."""
        ends = np.cumsum(self._counts)
        return [slice(end - count, end) for end, count in zip(ends.tolist(), self._counts.tolist(), strict=True)]

    @property
    def after(self) -> np.ndarray:
        """The positions that have a position before them in their sequence."""
        return self.index[len(self.first) :]

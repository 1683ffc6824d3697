"""Batches of padded chains by the compiled recursions: what `kcrf.crf` computes for tensors on a CPU. Needs numba."""

import numpy as np

from kcrf.chains import compiled
from kcrf.chains.packing import Packing
from kcrf.chains.recursions import FORBIDDEN, IS_FORBIDDEN, counts_of_logarithms, score_range

_UNDERFLOW = 600
Results = tuple[np.ndarray, np.ndarray, np.ndarray]


class Batch:
    """The real positions of a batch as sequences without gaps, with the scores of starts and ends in the emissions."""

    def __init__(self, emissions: np.ndarray, mask: np.ndarray, scores: np.ndarray) -> None:
        self.mask, self.shape, lengths = mask, emissions.shape, mask.sum(axis=1)
        self.rows = np.flatnonzero(lengths)
        self.packing = Packing.of_lengths(lengths[self.rows])
        scores = np.maximum(scores, FORBIDDEN, dtype="float64")
        self.transitions = np.ascontiguousarray(scores[:-2])
        self.emissions = np.maximum(emissions[mask], FORBIDDEN, dtype="float64")  # (positions, tags)
        self.emissions[self.packing.first] += scores[-2]
        self.emissions[self.packing.last] += scores[-1]

    def best_paths(self) -> np.ndarray:
        """The tags of the best paths, `(batch, time)` int32, -1 where masked."""
        tags, paths = np.zeros(len(self.emissions), "int64"), np.full(self.mask.shape, -1, "int32")
        scores = self.emissions.astype("float32")
        moves = self.transitions.astype("float32")
        compiled.best_paths(scores, moves, self.packing.first, self.packing.lengths, tags)
        paths[self.mask] = tags
        return paths

    def counts(self, labels: np.ndarray | None = None) -> Results:
        """log Z, or the log likelihood of labels `(batch, time)`, negative if unknown, and its gradients, float32.

        The gradients are `(batch, time, tags)` for the emissions and `(batch, tags + 2, tags)` for the scores.
        """
        values, marginals, steps = self._expected(self.emissions)
        if labels is not None:
            known = np.ascontiguousarray(labels[self.mask], "int64")
            values, marginals, steps = -values, -marginals, -steps
            if known.size and known.min() >= 0:
                arrays = (self.packing.first, self.packing.lengths, known, values, marginals, steps)
                compiled.add_paths(self.emissions, self.transitions, *arrays)
            else:
                self._add_restricted(known, values, marginals, steps)
        return self._padded(values, marginals, steps)

    def _add_restricted(self, known: np.ndarray, values: np.ndarray, marginals: np.ndarray, steps: np.ndarray) -> None:
        """Adds the counts of all paths that agree with the known labels; a sentence without any has the results 0."""
        others = (known[:, None] >= 0) & (known[:, None] != np.arange(self.shape[2]))
        for total, part in zip((values, marginals, steps), self._expected(np.where(others, FORBIDDEN, self.emissions))):
            total += part
        nothing = np.maximum.reduceat(known, self.packing.first) < 0 if len(known) else np.zeros(0, bool)
        values[nothing], steps[nothing] = 0, 0
        marginals[np.repeat(nothing, self.packing.lengths)] = 0

    def _expected(self, emissions: np.ndarray) -> Results:
        """log Z `(sequences,)`, the marginals `(positions, tags)` and the expected transitions of each sequence."""
        size, first, lengths = self.shape[2], self.packing.first, self.packing.lengths
        highest = self.transitions.max(initial=FORBIDDEN)
        moves = np.exp(self.transitions - highest)
        lowest = np.array([IS_FORBIDDEN, _UNDERFLOW - score_range(self.transitions - highest)])
        values, steps = np.zeros(len(lengths)), np.zeros((max(len(lengths), 2), size, size))
        marginals, onward = np.zeros((2, *emissions.shape))
        if compiled.expected_counts(emissions, moves, lowest, first, lengths, values, marginals, onward, steps):
            return values + highest * (lengths - 1), marginals, steps[: len(lengths)] * moves
        for number, (start, length) in enumerate(zip(first.tolist(), lengths.tolist())):
            rows, one = emissions[start : start + length].T, [slice(i, i + 1) for i in range(length)]
            counts = counts_of_logarithms(rows, self.transitions, one, False)
            values[number], marginals[start : start + length], steps[number] = counts[0], counts[1].T, counts[2]
        return values, marginals, steps[: len(lengths)]

    def _padded(self, values: np.ndarray, marginals: np.ndarray, steps: np.ndarray) -> Results:
        batch, size = self.shape[0], self.shape[2]
        value, counts = np.zeros(batch, "float32"), np.zeros(self.shape, "float32")
        of_scores = np.zeros((batch, size + 2, size), "float32")
        value[self.rows], counts[self.mask], of_scores[self.rows, :-2] = values, marginals, steps
        of_scores[self.rows, -2] = marginals[self.packing.first]
        of_scores[self.rows, -1] = marginals[self.packing.last]
        return value, counts, of_scores

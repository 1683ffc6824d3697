"""The exact recursions of a linear-chain CRF in NumPy: one Viterbi, one forward-backward.

Emissions are `(positions, tags)`; a `Packing` says where the sequences are. Transitions are `(tags, tags)`, from row to
column. Inside, arrays are packed and have the tags first. The sequences of a step are the first ones of the step before
it, so no position is padding.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

FORBIDDEN = -1e9  # finite, because -inf makes gradients NaN; below the score of any allowed path
IS_FORBIDDEN = FORBIDDEN / 2  # a score below this contains FORBIDDEN plus other scores
_MANY_TAGS = 16
_UNDERFLOW = 600  # exp(-600) is far from 0 in float64


class Packing:
    """Where sequences are in one array, and the order of a recursion: all first positions, all second ones, and so on.

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


def best_paths(emissions: np.ndarray, transitions: np.ndarray, packing: Packing) -> np.ndarray:
    """The tag of each position on the best path of its sequence (Viterbi), `(positions,)`, 0 outside of sequences."""
    tags = np.zeros(len(emissions), "int64")
    scores = packed(emissions, packing)  # then of the best path from the first position that ends in each tag
    transitions, steps = np.asarray(transitions, scores.dtype), packing.steps
    best_before = _best_before(transitions)
    for before, here in _pairs(steps):
        scores[:, here] += best_before(scores[:, before])
    tags[packing.index] = _trace_back(scores, transitions, steps)
    return tags


def packed(emissions: np.ndarray, packing: Packing) -> np.ndarray:
    """The emissions in the order of a packing, `(tags, positions)`: a copy."""
    return np.ascontiguousarray(emissions[packing.index].T)


def _best_before(transitions: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The function from scores `(from, sequences)` to the best ones plus a transition that is allowed, `(to, ...)`."""
    into = np.ascontiguousarray(transitions[:, :, None])  # (from, to, 1)
    blocks = _blocks(transitions > IS_FORBIDDEN) if len(transitions) >= _MANY_TAGS else []
    if 2 * sum(sources.size * targets.shape[1] for sources, targets in blocks) > transitions.size or not blocks:
        return lambda scores: np.max(scores[:, None] + into, axis=0)
    parts = [(sources, targets, into[sources[:, :, None], targets[:, None]]) for sources, targets in blocks]

    def best_before(scores: np.ndarray) -> np.ndarray:
        best = np.full(scores.shape, FORBIDDEN, scores.dtype)
        for sources, targets, part in parts:  # (blocks, from, to, 1)
            best[targets] = np.max(scores[sources][:, :, None] + part, axis=1)
        return best

    return best_before


def _blocks(allowed: np.ndarray) -> list[tuple[np.ndarray, ...]]:
    """Groups allowed transitions by size into blocks of source tags `(blocks, from)` and target tags `(blocks, to)`."""
    targets_of: dict[tuple[int, ...], list[int]] = {}
    sizes: dict[tuple[int, int], list[Any]] = {}
    for target, column in enumerate(allowed.T):
        targets_of.setdefault(tuple(np.flatnonzero(column).tolist()), []).append(target)
    for sources, targets in targets_of.items():
        if sources:
            sizes.setdefault((len(sources), len(targets)), []).append((sources, targets))
    return [tuple(np.array(tags) for tags in zip(*blocks, strict=True)) for blocks in sizes.values()]


def _trace_back(scores: np.ndarray, transitions: np.ndarray, steps: list[slice]) -> np.ndarray:
    """The packed tags of the best paths, found from the last position of each sequence to its first."""
    tags = np.zeros(scores.shape[1], "int64")
    count = 0  # of the sequences that continue after this step
    for number in range(len(steps) - 1, -1, -1):
        here = steps[number]
        if count:
            going = slice(here.start, here.start + count)
            tags[going] = np.argmax(scores[:, going] + transitions[:, tags[steps[number + 1]]], axis=0)
        ends = slice(here.start + count, here.stop)
        if ends.start < ends.stop:
            tags[ends] = np.argmax(scores[:, ends], axis=0)
        count = here.stop - here.start
    return tags


class Counts(NamedTuple):
    """Expected counts of some sequences under a CRF."""

    log_z: float  # the sum over all sequences
    marginals: np.ndarray  # (positions, tags), the posterior probability of every tag
    steps: np.ndarray  # (tags, tags), how often each transition is expected in all sequences
    # (positions, tags), the emission score plus log beta, up to a constant of each position
    onward: np.ndarray | None = None


def expected_counts(
    emissions: np.ndarray, transitions: np.ndarray, packing: Packing, with_onward: bool = False
) -> Counts:
    """The expected counts, by one forward and one backward recursion. Every sequence needs a path that is allowed."""
    highest = float(transitions.max())
    scores = packed(emissions, packing)
    top = scores.max(axis=0)
    far = score_range(scores - top) + score_range(transitions - highest) > _UNDERFLOW
    recursions = counts_of_logarithms if far else _counts_of_probabilities
    log_z, posterior, steps, onward = recursions(scores - top, transitions - highest, packing.steps, with_onward)
    log_z += top.sum(dtype="float64") + highest * (len(top) - len(packing.lengths))
    marginals = np.zeros(emissions.shape, scores.dtype)
    marginals[packing.index] = posterior.T
    if onward is None:
        return Counts(log_z, marginals, steps)
    onwards = np.full(emissions.shape, FORBIDDEN, scores.dtype)
    onwards[packing.index] = np.maximum(onward, FORBIDDEN).T
    return Counts(log_z, marginals, steps, onwards)


def score_range(scores: np.ndarray) -> float:
    """How far the lowest score that is not forbidden is below 0, the highest."""
    return -float(np.min(scores, initial=0.0, where=scores > IS_FORBIDDEN))


def _pairs(steps: list[slice]) -> list[tuple[slice, slice]]:
    """For each step but the first, the packed positions before it, and its own."""
    return [(slice(b.start, b.start + here.stop - here.start), here) for b, here in zip(steps, steps[1:])]


def _counts_of_probabilities(
    scores: np.ndarray, transitions: np.ndarray, steps: list[slice], with_onward: bool
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray | None]:
    """As `Counts`, packed, with probabilities that are normalized at each position."""
    potentials, moves, pairs = np.exp(scores), np.exp(transitions).astype(scores.dtype), _pairs(steps)
    forward, totals = potentials.copy(), np.empty(scores.shape[1], scores.dtype)
    for number, here in enumerate(steps):
        if number:
            forward[:, here] *= moves.T @ forward[:, pairs[number - 1][0]]
        totals[here] = forward[:, here].sum(axis=0)
        forward[:, here] /= totals[here]
    onward, posterior = potentials / totals, forward.copy()  # the backward recursion multiplies both by beta
    for before, here in reversed(pairs):
        following = moves @ onward[:, here]
        onward[:, before] *= following
        posterior[:, before] *= following
    expected = sum((forward[:, before] @ onward[:, here].T for before, here in pairs), np.zeros(moves.shape))
    with np.errstate(divide="ignore"):
        logarithms = np.log(onward) if with_onward else None
    return float(np.log(totals).sum(dtype="float64")), posterior, expected * moves, logarithms


def counts_of_logarithms(
    scores: np.ndarray, transitions: np.ndarray, steps: list[slice], with_onward: bool
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray | None]:
    """As `_counts_of_probabilities`, slower, for scores whose exponentials are 0."""
    forward, onward, pairs, moves = scores.astype("float64"), scores.astype("float64"), _pairs(steps), transitions
    for before, here in pairs:
        forward[:, here] += np.logaddexp.reduce(forward[:, None, before] + moves[:, :, None], axis=0)
    for before, here in reversed(pairs):
        onward[:, before] += np.logaddexp.reduce(moves[:, :, None] + onward[None, :, here], axis=1)
    paths = forward + onward - scores  # the logarithm of the sum over all paths with this tag
    log_z = np.logaddexp.reduce(paths, axis=0)  # (positions,), of the sequence of each
    expected = np.zeros(moves.shape)
    for before, here in pairs:
        ways = forward[:, None, before] + moves[:, :, None] + onward[None, :, here]  # (from, to, sequences)
        expected += np.exp(ways - log_z[here]).sum(axis=2)
    first = slice(steps[0].stop) if steps else slice(0)
    return float(log_z[first].sum()), np.exp(paths - log_z), expected, onward if with_onward else None

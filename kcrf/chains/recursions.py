"""The exact recursions of a linear-chain CRF in NumPy: one Viterbi, one forward-backward.

Emissions are `(positions, tags)`; a `Packing` says where the sequences are. Transitions are `(tags, tags)`, from row to
column. Inside, arrays are packed: the sequences of a step are the first ones of the step before it, so no position is
padding.
"""

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

FORBIDDEN = -1e9  # finite, because -inf makes gradients NaN; below the score of any allowed path
IS_FORBIDDEN = FORBIDDEN / 2  # a score below this contains FORBIDDEN plus other scores
_MANY_TAGS = 16
_UNDERFLOW = 500  # exp(-500) is far from 0 in float64, whose smallest number is exp(-708)
_DECAY = 150  # sums of probabilities are divided before they are below exp(-150) or above exp(150)


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
    def counts(self) -> np.ndarray:
        """For each step the number of sequences that are long enough, `(time,)`."""
        lengths = self.lengths[self.order]
        return np.searchsorted(-lengths, -np.arange(self.lengths.max(initial=0)), side="left")

    @cached_property
    def _starts(self) -> np.ndarray:
        """The first packed position of each step, `(time,)`."""
        return np.cumsum(self.counts) - self.counts

    @cached_property
    def sequence(self) -> np.ndarray:
        """The number of the sequence of each packed position, `(positions,)`."""
        starts = np.repeat(self._starts, self.counts)
        return self.order[np.arange(len(starts)) - starts]

    @cached_property
    def ends(self) -> np.ndarray:
        """The packed positions at which sequences end, in the order of `order`; empty sequences have none."""
        lengths = self.lengths[self.order]
        lengths = lengths[lengths > 0]
        return self._starts[lengths - 1] + np.arange(len(lengths))

    @cached_property
    def index(self) -> np.ndarray:
        """The position of each packed position, `(positions,)`."""
        return self.first[self.sequence] + np.repeat(np.arange(len(self.counts)), self.counts)

    @cached_property
    def steps(self) -> list[slice]:
        """Slices of packed positions. The slice of step t has position t of each sequence that is long enough."""
        bounds = zip(self._starts.tolist(), self.counts.tolist(), strict=True)
        return [slice(start, start + count) for start, count in bounds]

    @cached_property
    def pairs(self) -> list[tuple[slice, slice]]:
        """For each step but the first, the packed positions before it, and its own."""
        steps = zip(self.steps, self.steps[1:])
        return [(slice(before.start, before.start + here.stop - here.start), here) for before, here in steps]

    def sums(self, values: np.ndarray) -> np.ndarray:
        """The sums of a value of each packed position, `(sequences,)` float64."""
        return np.bincount(self.sequence, values, len(self.first)).astype("float64")

    @property
    def following(self) -> slice:
        """The packed positions that have a position before them in their sequence."""
        return slice(self.counts[:1].sum(), None)

    @property
    def after(self) -> np.ndarray:
        """The positions that have a position before them in their sequence."""
        return self.index[self.following]


def best_paths(emissions: np.ndarray, transitions: np.ndarray, packing: Packing) -> np.ndarray:
    """The tag of each position on the best path of its sequence (Viterbi), `(positions,)`, 0 outside of sequences."""
    tags = np.zeros(len(emissions), "int64")
    scores = packed(emissions, packing)  # then of the best path from the first position that ends in each tag
    transitions = np.asarray(transitions, scores.dtype)
    best_before = _best_before(transitions)
    for before, here in packing.pairs:
        scores[:, here] += best_before(scores[:, before])
    tags[packing.index] = _trace_back(scores, transitions, packing)
    return tags


def packed(emissions: np.ndarray, packing: Packing) -> np.ndarray:
    """The emissions in the order of a packing, `(tags, positions)`: a copy."""
    return np.ascontiguousarray(emissions[packing.index].T)


def _best_before(transitions: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The function from scores `(from, sequences)` to the best ones plus a transition that is allowed, `(to, ...)`."""
    into = np.ascontiguousarray(transitions[:, :, None])  # (from, to, 1)
    blocks = _blocks(transitions > IS_FORBIDDEN) if len(transitions) >= _MANY_TAGS else []
    if 2 * sum(sources.size * targets.shape[1] for sources, targets in blocks) > transitions.size or not blocks:
        return lambda scores: np.maximum.reduce(scores[:, None] + into, axis=0)
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


def _trace_back(scores: np.ndarray, transitions: np.ndarray, packing: Packing) -> np.ndarray:
    """The packed tags of the best paths, found from the last position of each sequence to its first."""
    rows, into = np.ascontiguousarray(scores.T), np.ascontiguousarray(transitions.T)  # into: (to, from)
    tags = np.zeros(len(rows), "int64")
    tags[packing.ends] = rows[packing.ends].argmax(axis=1)
    for before, here in reversed(packing.pairs):
        (rows[before] + into[tags[here]]).argmax(axis=1, out=tags[before])
    return tags


class Counts(NamedTuple):
    """Expected counts of some sequences under a CRF."""

    log_z: np.ndarray  # (sequences,)
    marginals: np.ndarray  # (positions, tags), the posterior probability of every tag
    steps: np.ndarray  # (tags, tags), how often each transition is expected; or by sequence, (sequences, tags, tags)
    # (positions, tags), the emission score plus log beta, up to a constant of each position
    onward: np.ndarray | None = None


def expected_counts(
    emissions: np.ndarray,
    transitions: np.ndarray,
    packing: Packing,
    with_onward: bool = False,
    by_sequence: bool = False,
) -> Counts:
    """The expected counts, by one forward and one backward recursion. Every sequence needs a path that is allowed."""
    highest = transitions.max()
    scores = emissions[packing.index].astype("float64")
    top = np.ascontiguousarray(scores.T).max(axis=0)  # ten times as fast as along rows of few tags
    scores, moves = scores - top[:, None], transitions - highest
    with np.errstate(all="ignore"):  # the caller sees NaN
        found = _counts_of_probabilities(scores, moves, packing, by_sequence)
        log_z, posterior, steps, onward = found or counts_of_logarithms(scores, moves, packing, by_sequence)
        onward = np.log(onward) if found and with_onward else onward
    log_z += packing.sums(top) + highest * np.maximum(packing.lengths - 1, 0)
    marginals = np.zeros(emissions.shape)
    marginals[packing.index] = posterior
    if not with_onward:
        return Counts(log_z, marginals, steps)
    onwards = np.full(emissions.shape, FORBIDDEN)
    onwards[packing.index] = np.maximum(onward, FORBIDDEN)
    return Counts(log_z, marginals, steps, onwards)


def counts_of_tags(
    tags: np.ndarray, emissions: np.ndarray, transitions: np.ndarray, packing: Packing, by_sequence: bool = False
) -> Counts:
    """The counts given the tags `(positions,)`. Unknown tags, below 0, are marginalized out."""
    is_tag = tags[:, None] == np.arange(len(transitions))  # (positions, tags)
    if (tags < 0).any():
        clamped = np.where(is_tag | (tags < 0)[:, None], emissions, FORBIDDEN)
        return expected_counts(clamped, transitions, packing, by_sequence=by_sequence)
    before, after = tags[packing.after - 1], tags[packing.after]
    scores = emissions[packing.index, tags[packing.index]]
    scores[packing.following] += transitions[before, after]
    shape = (len(packing.first), *transitions.shape) if by_sequence else transitions.shape
    places = np.ravel_multi_index((packing.sequence[packing.following], before, after)[3 - len(shape) :], shape)
    steps = np.bincount(places, minlength=math.prod(shape)).reshape(shape)
    return Counts(packing.sums(scores), is_tag, steps)


def score_range(scores: np.ndarray) -> float:
    """How far the lowest score that is not forbidden is below 0, the highest."""
    return -float(np.min(scores, initial=0.0, where=scores > IS_FORBIDDEN))


def _counts_of_probabilities(
    scores: np.ndarray, transitions: np.ndarray, packing: Packing, by_sequence: bool
) -> tuple[np.ndarray, ...] | None:
    """As `Counts`, packed, by recursions on probabilities; None if one of them may be too small for a float."""
    span = score_range(scores) + score_range(transitions)
    if not span < _UNDERFLOW:  # or NaN
        return None
    potentials, moves = np.exp(scores), np.exp(transitions)
    forward, totals = _forward(potentials, moves, packing, int(_DECAY / (span + np.log(len(moves)) + 1)))
    closing = forward[packing.ends].sum(axis=1, keepdims=True)
    # A step makes a sum at most exp(span) times smaller: if the smallest one is far from 0, none has become 0.
    smallest = np.min(forward, initial=1.0, where=forward != 0)
    if not np.log(smallest) - span > -_UNDERFLOW or not closing.all():
        return None
    # Only of tags that a path reaches: others may grow without bound.
    onward = np.where(forward > 0, potentials / totals, 0.0)
    after = np.ones_like(forward)  # beta
    after[packing.ends] = 1 / closing
    onward[packing.ends] /= closing
    back = np.ascontiguousarray(moves.T)
    for before, here in reversed(packing.pairs):
        np.dot(onward[here], back, out=after[before])
        onward[before] *= after[before]
    log_z = packing.sums(np.log(totals[:, 0]))
    log_z[packing.order[: len(closing)]] += np.log(closing[:, 0])
    return log_z, forward * after, _steps(forward, onward, packing, by_sequence) * moves, onward


def _forward(potentials: np.ndarray, moves: np.ndarray, packing: Packing, stride: int) -> tuple[np.ndarray, np.ndarray]:
    """The sums over the paths to each tag, and by what they were divided every `stride` steps, `(positions, 1)`."""
    sums, totals = potentials.copy(), np.ones((len(potentials), 1))
    for number, (before, here) in enumerate(packing.pairs):
        row = sums[here]
        row *= np.dot(sums[before], moves)
        if stride < 2 or number % stride == 0:
            totals[here] = row.sum(axis=1, keepdims=True)
            row /= totals[here]
    return sums, totals


def _steps(forward: np.ndarray, onward: np.ndarray, packing: Packing, by_sequence: bool) -> np.ndarray:
    """The sums of the products of each position and the next one in its sequence, `(..., from, to)`."""
    counts, following = packing.counts, packing.following
    before = forward[np.arange(len(forward))[following] - np.repeat(counts[:-1], counts[1:])]
    if not by_sequence:
        return before.T @ onward[following]
    place = np.argsort(packing.sequence[following], kind="stable")
    before, after, ends = before[place], onward[following][place], np.cumsum(np.maximum(packing.lengths - 1, 0))
    steps = np.zeros((len(ends), before.shape[1], before.shape[1]))
    start = 0
    for number, end in enumerate(ends.tolist()):
        np.dot(before[start:end].T, after[start:end], out=steps[number])
        start = end
    return steps


def counts_of_logarithms(
    scores: np.ndarray, transitions: np.ndarray, packing: Packing, by_sequence: bool
) -> tuple[np.ndarray, ...]:
    """As `_counts_of_probabilities`, slower, for scores whose exponentials are 0; `onward` in logarithms."""
    forward, onward, pairs, log_sum = scores.copy(), scores.copy(), packing.pairs, np.logaddexp.reduce
    for before, here in pairs:
        forward[here] += log_sum(forward[before][:, :, None] + transitions, axis=1)
    for before, here in reversed(pairs):
        onward[before] += log_sum(transitions + onward[here][:, None], axis=2)
    paths = forward + onward - scores  # the logarithm of the sum over all paths with this tag
    totals = log_sum(paths, axis=1)  # (positions,), log Z of the sequence of each
    steps = np.zeros((len(packing.first), *transitions.shape) if by_sequence else transitions.shape)
    for before, here in pairs:
        ways = forward[before][:, :, None] + transitions + onward[here][:, None]  # (sequences, from, to)
        expected = np.exp(ways - totals[here, None, None])
        if by_sequence:
            steps[packing.sequence[here]] += expected
        else:
            steps += expected.sum(axis=0)
    log_z = np.zeros(len(packing.first))
    log_z[packing.sequence[packing.ends]] = totals[packing.ends]
    return log_z, np.exp(paths - totals[:, None]), steps, onward

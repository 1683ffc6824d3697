"""The exact recursions of a linear-chain CRF on packed sequences, in NumPy.

Emissions are `(tags, positions)`, packed in the order of `kcrf.linear.packing.Packing`. Transitions are
`(tags, tags)`, from row to column. The sequences of a step are the first ones of the step before it, so no position is
padding.
"""

from typing import NamedTuple

import numpy as np

_MANY_TAGS = 16
_NOT_ALLOWED = -5e8  # transitions below this score are not allowed


def best_paths(emissions, transitions, steps):
    """The tag of each position on the best path of its sequence (Viterbi), `(positions,)`.

    Args:
        emissions: `(tags, positions)`, packed.
        transitions: `(tags, tags)`.
        steps: The slices of a `Packing`.

    >>> best_paths(np.array([[1.0, 0.0], [0.0, 0.9]]), np.array([[0.0, -2.0], [0.0, 0.0]]), [slice(0, 1), slice(1, 2)])
    array([0, 0])
    """
    scores = np.array(emissions)  # then of the best path from the first position that ends in each tag
    transitions = np.asarray(transitions, scores.dtype)
    best_before = _best_before(transitions)
    for before, here in zip(steps, steps[1:]):
        count = here.stop - here.start
        scores[:, here] += best_before(scores[:, before.start : before.start + count])
    return _trace_back(scores, transitions, steps)


def _best_before(transitions):
    """Returns the function `best_before(scores)` of one step of the Viterbi recursion.

    It takes scores `(from, sequences)` and returns the maximum of score plus transition over the tags before,
    `(to, sequences)`. With many tags, it omits transitions that are not allowed. With classes of words, three quarters
    are not allowed: the end of a word is followed by the begin of a word of any class, but a word keeps its class.
    """
    into = np.ascontiguousarray(transitions[:, :, None])  # (from, to, 1)
    blocks = _blocks(transitions > _NOT_ALLOWED) if len(transitions) >= _MANY_TAGS else []
    if 2 * sum(sources.size * targets.shape[1] for sources, targets in blocks) > transitions.size or not blocks:
        return lambda scores: np.max(scores[:, None] + into, axis=0)
    parts = [(sources, targets, into[sources[:, :, None], targets[:, None]]) for sources, targets in blocks]

    def best_before(scores):
        best = np.full(scores.shape, 2 * _NOT_ALLOWED, scores.dtype)
        for sources, targets, part in parts:  # (blocks, from, to, 1)
            best[targets] = np.max(scores[sources][:, :, None] + part, axis=1)
        return best

    return best_before


def _blocks(allowed):
    """Groups the allowed transitions into blocks. In a block, all target tags may follow all source tags.

    Args:
        allowed: `(from, to)` bool.

    Returns:
        For each size of blocks a pair of arrays: the source tags `(blocks, from)` and the target tags `(blocks, to)`.

    >>> [(sources.tolist(), targets.tolist()) for sources, targets in _blocks(np.eye(2) > 0)]
    [([[0], [1]], [[0], [1]])]
    """
    targets_of, sizes = {}, {}
    for target, column in enumerate(allowed.T):
        targets_of.setdefault(tuple(np.flatnonzero(column).tolist()), []).append(target)
    for sources, targets in targets_of.items():
        if sources:
            sizes.setdefault((len(sources), len(targets)), []).append((sources, targets))
    return [tuple(np.array(tags) for tags in zip(*blocks, strict=True)) for blocks in sizes.values()]


def _trace_back(scores, transitions, steps):
    """The tags of the best paths, found from the last position of each sequence to its first."""
    tags = np.zeros(scores.shape[1], "int64")
    count = 0  # of the sequences that continue after this step
    for number in range(len(steps) - 1, -1, -1):
        here = steps[number]
        if count:
            follows = tags[steps[number + 1]]
            tags[here.start : here.start + count] = np.argmax(
                scores[:, here.start : here.start + count] + transitions[:, follows], axis=0
            )
        ends = slice(here.start + count, here.stop)
        if ends.start < ends.stop:
            tags[ends] = np.argmax(scores[:, ends], axis=0)
        count = here.stop - here.start
    return tags


class Counts(NamedTuple):
    """Expected counts of some sequences under a CRF.

    Attributes:
        log_z: The sum of log Z over all sequences.
        marginals: `(tags, positions)`, the posterior probability of every tag.
        steps: `(tags, tags)`, how often each transition is expected in all sequences.
        onward: `(tags, positions)`, up to a factor of each position the exponential of the emission score times the sum
            over all continuations (beta).
    """

    log_z: float
    marginals: np.ndarray
    steps: np.ndarray
    onward: np.ndarray


def expected_counts(emissions, transitions, steps):
    """The expected counts, by one forward and one backward recursion over probabilities, normalized at each position.

    Args:
        emissions, transitions, steps: As for `best_paths`; forbidden tags and transitions have the score -inf. Other
            scores must be less than 600 below the best one of their position.

    Returns:
        `Counts`.
    """
    top, highest = emissions.max(axis=0), transitions.max()
    potentials, transition_potentials = np.exp(emissions - top), np.exp(transitions - highest).astype(emissions.dtype)
    forward, totals = potentials.copy(), np.empty(emissions.shape[1], emissions.dtype)
    for number, here in enumerate(steps):
        if number:
            first = steps[number - 1].start
            forward[:, here] *= transition_potentials.T @ forward[:, first : first + here.stop - here.start]
        totals[here] = forward[:, here].sum(axis=0)
        forward[:, here] /= totals[here]
    onward, marginals = potentials / totals, forward.copy()  # the backward recursion multiplies both by beta
    for before, after in zip(steps[-2::-1], steps[:0:-1]):
        here = slice(before.start, before.start + after.stop - after.start)
        following = transition_potentials @ onward[:, after]
        onward[:, here] *= following
        marginals[:, here] *= following
    expected = np.zeros(transitions.shape, "float64")
    for before, after in zip(steps, steps[1:]):
        expected += forward[:, before.start : before.start + after.stop - after.start] @ onward[:, after].T
    log_z = np.log(totals).sum(dtype="float64") + top.sum(dtype="float64")
    transition_count = emissions.shape[1] - (steps[0].stop - steps[0].start if steps else 0)
    return Counts(log_z + highest * transition_count, marginals, expected * transition_potentials, onward)

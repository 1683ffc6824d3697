"""The recursions of `kcrf.chains.recursions` as compiled code, one sequence after the other. Needs numba.

Compiled code is cached beside this file, or in the user's cache folder, so that processes do not compile anew.
"""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np
from numba import njit


@njit(cache=True)
def best_paths(scores, transitions, first, lengths, tags):
    """Viterbi: writes the tags `(positions,)`. Changes the emission scores `(positions, tags)`."""
    size = scores.shape[1]
    best = np.empty(size, scores.dtype)
    for number in range(len(first)):
        start, stop = first[number], first[number] + lengths[number]
        for here in range(start + 1, stop):
            for to in range(size):
                best[to] = scores[here - 1, 0] + transitions[0, to]
            for before in range(1, size):
                score = scores[here - 1, before]
                for to in range(size):
                    best[to] = max(best[to], score + transitions[before, to])
            for to in range(size):
                scores[here, to] += best[to]
        tag = 0
        for other in range(1, size):
            if scores[stop - 1, other] > scores[stop - 1, tag]:
                tag = other
        tags[stop - 1] = tag
        for here in range(stop - 2, start - 1, -1):
            follows, tag = tag, 0
            for other in range(1, size):
                if scores[here, other] + transitions[other, follows] > scores[here, tag] + transitions[tag, follows]:
                    tag = other
            tags[here] = tag


@njit(cache=True)
def expected_counts(scores, moves, lowest, first, lengths, values, marginals, onward, steps):
    """Forward-backward over normalized probabilities; False if a score is outside of their range, `lowest`.

    Writes log Z, the marginals and beta times the potentials, and adds the transitions, without `moves`, to `steps`.
    """
    size, shared = scores.shape[1], len(steps) == 1
    for number in range(len(first)):
        start, stop, value = first[number], first[number] + lengths[number], 0.0
        for here in range(start, stop):  # marginals: alpha
            top = scores[here].max()
            for to in range(size):
                if lowest[0] < scores[here, to] < top - lowest[1]:
                    return False
                onward[here, to] = np.exp(scores[here, to] - top)
                marginals[here, to] = onward[here, to] if here == start else 0.0
            if here > start:
                for before in range(size):
                    alpha = marginals[here - 1, before]
                    for to in range(size):
                        marginals[here, to] += alpha * moves[before, to]
            total = 0.0
            for to in range(size):
                marginals[here, to] *= onward[here, to] if here > start else 1.0
                total += marginals[here, to]
            if total < 1e-290:  # no path is allowed
                return False
            for to in range(size):
                marginals[here, to] /= total
                onward[here, to] /= total
            value += np.log(total) + top
        values[number] = value
        counts = steps[0 if shared else number]
        for here in range(stop - 2, start - 1, -1):
            for before in range(size):
                following, alpha = 0.0, marginals[here, before]
                for to in range(size):
                    following += moves[before, to] * onward[here + 1, to]
                    counts[before, to] += alpha * onward[here + 1, to]
                onward[here, before] *= following
                marginals[here, before] = alpha * following
    return True


@njit(cache=True)
def add_paths(emissions, transitions, first, lengths, tags, values, counts, steps):
    """Adds the scores of paths to `values` `(sequences,)`, and their tags and transitions to the counts."""
    for number in range(len(first)):
        for here in range(first[number], first[number] + lengths[number]):
            values[number] += emissions[here, tags[here]]
            counts[here, tags[here]] += 1
            if here > first[number]:
                values[number] += transitions[tags[here - 1], tags[here]]
                steps[number, tags[here - 1], tags[here]] += 1

"""The k best tag sequences of a chain, from its posterior probabilities."""

import numpy as np

from kcrf.chains.posterior import Posterior
from kcrf.chains.recursions import IS_FORBIDDEN
from kcrf.tags import TagScheme


def best_sequences(posterior: Posterior, k: int, scheme: TagScheme | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The k most probable tag sequences of sentences: tags `(batch, k, time)`, -1 where masked.

    Also returns their log probabilities `(batch, k)`, -inf if there are fewer sequences.

    Given all scores, the tags are a Markov chain, and the sequences are the k best paths of the chain.
    """
    batch, time, size = posterior.marginals.shape
    starts, moves, ends = _forbidden(scheme, size)
    rows = np.arange(batch)
    with np.errstate(divide="ignore"):
        first = np.log(posterior.marginals[rows, posterior.order[:, 0]].astype("float64"))  # (batch, tags)
    values = np.full((batch, size, k), -np.inf)  # of the k best partial paths that end in each tag
    values[:, :, 0] = first + starts
    before = []  # back pointers of each position, (batch, tags, k) numbers below tags * k
    for number in range(1, time):
        steps = posterior.log_conditionals(rows[:, None], np.full((1, 1), number), np.arange(size)[None]) + moves
        scores = (values[:, :, :, None] + steps[:, :, None]).reshape(batch, size * k, size)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :k]  # (batch, k, tags)
        goes_on = (number < posterior.counts)[:, None, None]
        before.append(np.where(goes_on, best.swapaxes(1, 2), np.arange(size * k).reshape(size, k)))
        values = np.where(goes_on, np.take_along_axis(scores, best, axis=1).swapaxes(1, 2), values)
    values = (values + ends[:, None]).reshape(batch, size * k)
    at = np.argsort(-values, axis=1, kind="stable")[:, :k]
    values = np.take_along_axis(values, at, axis=1)
    return _follow(posterior, before, at, k), np.where(values > IS_FORBIDDEN, np.minimum(values, 0.0), -np.inf)


def _forbidden(scheme: TagScheme | None, size: int) -> tuple[np.ndarray, ...]:
    """Arrays to add to the scores of starts `(tags,)`, of transitions `(tags, tags)` and of ends: -inf if forbidden."""
    if scheme is None:
        return np.zeros(size), np.zeros((size, size)), np.zeros(size)
    allowed = (scheme.allowed_starts, scheme.allowed_transitions, scheme.allowed_ends)
    return tuple(np.where(may, 0.0, -np.inf) for may in allowed)


def _follow(posterior: Posterior, before: list[np.ndarray], at: np.ndarray, k: int) -> np.ndarray:
    """The tags `(batch, k, time)` of paths, from their ends `(batch, k)` to their beginnings."""
    paths = np.full((len(at), k, posterior.mask.shape[1]), -1)
    for number in range(posterior.mask.shape[1] - 1, -1, -1):
        real = np.flatnonzero(number < posterior.counts)
        paths[real, :, posterior.order[real, number]] = at[real] // k
        if number:
            at = np.take_along_axis(before[number - 1].reshape(len(at), -1), at, axis=1)
    return paths

"""Recursions on logarithms: slower than those on probabilities, and exact for scores of any size.

As in Rabiner 1989, alpha is the sum over all paths up to a position, given its tag, beta the sum over all paths after
it, and gamma the posterior of its tag. Here they are logarithms, each up to a constant for its position.
"""

from typing import Any

from kcrf.backend import TensorLike, ops, scan
from kcrf.crf.scores import Counts
from kcrf.crf.trellis import Trellis, time_first

_LARGEST_SURPRISE = 100.0  # nats: exp(-100) is 0 in float32, and a forbidden score must not become inf * 0


def log_forward_backward(trellis: Trellis) -> Counts:
    """`forward_backward` of a centered trellis in log space."""
    emissions, linked = time_first(trellis.emissions), time_first(trellis.linked)[:, :, None]

    def forward(alpha: TensorLike, inputs: Any) -> Any:
        emission, link = inputs  # (batch, tags), (batch, 1)
        predicted = ops.logsumexp(alpha[:, :, None] + trellis.transitions, axis=1)  # (batch, from, to) -> (batch, to)
        reached = ops.where(link, predicted, alpha) + emission  # (batch, tags)
        top = ops.max(reached, axis=-1, keepdims=True)  # (batch, 1)
        return reached - top, (alpha, top)

    first = trellis.no_rows() + trellis.start  # (batch, tags)
    last, (alphas, tops) = scan(forward, first, (emissions, linked))  # alphas before each position: (time, batch, tags)
    last = last + trellis.end  # (batch, tags)

    def backward(carry: Any, inputs: Any) -> Any:
        (gamma, steps), (alpha, link) = carry, inputs  # (batch, tags), (batch, from, to), (batch, tags), (batch, 1)
        pairs = _softmax(alpha[:, :, None] + trellis.transitions, 1) * gamma[:, None]  # (batch, from, to)
        steps = steps + ops.where(link[:, :, None], pairs, 0.0)  # (batch, from, to)
        return (ops.where(link, ops.sum(pairs, axis=2), gamma), steps), gamma

    carry = (_softmax(last, -1), trellis.no_steps())
    (_, steps), gammas = scan(backward, carry, (alphas, linked), reverse=True)
    log_z = ops.sum(tops, axis=(0, 2)) + ops.logsumexp(last, axis=-1)  # (batch,)
    return log_z, time_first(gammas), steps


def log_beta(trellis: Trellis) -> TensorLike:
    """The log of the sum over all continuations of each position, up to a constant, `(batch, time, tags)`."""
    emissions, mask, continues = (time_first(x) for x in (trellis.emissions, trellis.mask, trellis.continues))

    def backward(ahead: TensorLike, inputs: Any) -> Any:
        emission, real, goes_on = inputs  # (batch, tags), (batch, 1), (batch, 1)
        beta = ops.logsumexp(trellis.transitions + ahead[:, None], axis=2)  # (batch, from, to) -> (batch, from)
        beta = ops.where(goes_on, beta, trellis.end)  # (batch, tags)
        reached = beta + emission
        reached = reached - ops.max(reached, axis=-1, keepdims=True)
        return ops.where(real, reached, ahead), beta

    inputs = (emissions, mask[:, :, None], continues[:, :, None])
    return time_first(scan(backward, trellis.no_rows(), inputs, reverse=True)[1])


def path_entropy(trellis: Trellis) -> TensorLike:
    """The entropy over paths in nats, `(batch,)`: the sum of the entropies of each tag given the tag after it.

    No term is negative, so nothing cancels (Hernando et al. 2005, https://doi.org/10.1109/TIT.2005.850223).
    """
    emissions, linked = time_first(trellis.emissions), time_first(trellis.linked)[:, :, None]

    def forward(carry: Any, inputs: Any) -> Any:
        (alpha, entropy), (emission, link) = carry, inputs  # (batch, tags) thrice, (batch, 1)
        mean, predicted = _mean_surprise(alpha[:, :, None] + trellis.transitions, entropy[:, :, None], 1)  # (batch, to)
        entropy = ops.where(link, mean, entropy)  # (batch, tags), of the tags before, given this one
        alpha = ops.where(link, predicted, alpha) + emission  # (batch, tags)
        return (alpha - ops.max(alpha, axis=-1, keepdims=True), entropy), alpha[:, 0]

    first = (trellis.no_rows() + trellis.start, trellis.no_rows())
    (last, entropy), _ = scan(forward, first, (emissions, linked))
    total, _ = _mean_surprise(last + trellis.end, entropy, -1)  # (batch,)
    return ops.where(trellis.occupied, total, 0.0)


def _mean_surprise(scores: TensorLike, entropy: TensorLike, axis: int) -> tuple[TensorLike, TensorLike]:
    """The mean of `entropy - log p` under p = softmax(scores) along an axis, and the logsumexp of the scores."""
    log_p, log_z = _log_softmax(scores, axis)
    mean = ops.sum(ops.exp(log_p) * (entropy + ops.minimum(-log_p, _LARGEST_SURPRISE)), axis=axis)
    return mean, ops.squeeze(log_z, axis=axis)


def _softmax(x: TensorLike, axis: int) -> TensorLike:
    """`ops.softmax` without its warning for an axis of length 1."""
    return ops.exp(_log_softmax(x, axis)[0])


def _log_softmax(x: TensorLike, axis: int) -> tuple[TensorLike, TensorLike]:
    """The logarithms of the softmax, and the logsumexp with axes kept."""
    top = ops.max(x, axis=axis, keepdims=True)  # `x - logsumexp(x)` has three decimals where scores are 10,000
    centered = x - top
    total = ops.logsumexp(centered, axis=axis, keepdims=True)
    return centered - total, top + total

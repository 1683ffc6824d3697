"""log Z and expected counts of a chain, by a forward and a backward recursion (Rabiner 1989, section V.A).

The forward recursion divides by its sum at each position: alpha becomes the probability of each tag given the emissions
up to its position, and the logarithms of these sums add up to log Z. The backward recursion goes from gamma, the
posterior of one position, to gamma of the position before. Both run again on logarithms after an `_underflow`: slower,
and exact for scores of any size.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from kcrf.backend import FEW_TAGS, TensorLike, loop_ops, ops, scan
from kcrf.chains import IS_FORBIDDEN
from kcrf.crf.blocks import OneLoop, SumBlocks, number_of_blocks
from kcrf.crf.chain import Chain, kernels_for
from kcrf.crf.trellis import Counts, Trellis, tags_first, time_first, with_gradient

_TINY = 1e-37  # the smallest normal float32 is 1.2e-38
_SMALLEST_SHARE = 1e-22  # the smallest probability of a reachable tag; times exp(-30) it is still above _TINY
_LARGEST_GAP = 30.0  # the largest difference of transition scores in nats; exp(-30) = 1e-13
_LARGEST_SURPRISE = 100.0  # nats: exp(-100) is 0 in float32, and a forbidden score must not become inf * 0


def log_partition_of(trellis: Trellis) -> TensorLike:
    """log Z with the gradient of the expected counts, `(batch,)`."""
    return with_gradient(trellis, forward_backward(trellis))


def forward_backward(chain: Chain | Trellis) -> Counts:
    """log Z and the expected counts: the posterior of each tag, 0 where masked, and transitions. No gradient."""
    if kernels := kernels_for(chain.emissions):
        return kernels.forward_backward(chain)
    trellis = Trellis(chain) if isinstance(chain, Chain) else chain
    centered, time = trellis.detached().centered(), trellis.emissions.shape[1]
    log_z, gamma, steps, underflow = _scaled_forward_backward(centered)
    log_z, gamma, steps = ops.cond(
        underflow,
        lambda: log_forward_backward(centered),
        # Transposed here: jax2onnx 0.17 drops a transpose whose result only a branch uses.
        lambda: (log_z, ops.transpose(gamma, (2, 0, 1))[:, :time], steps),
    )
    log_z = ops.where(trellis.occupied, log_z, 0.0)
    log_z = log_z if trellis.offset is not None else log_z + centered.offset
    return log_z, ops.where(trellis.mask[:, :, None], gamma, 0.0), steps


class _Factors(NamedTuple):
    """The exponentials of the scores, with the long axis, batch, last."""

    transitions: Any  # (from, to)
    start: Any  # (tags,)
    end: Any  # (tags,)
    emissions: Any  # (time, tags, batch)
    linked: Any  # (time, 1, batch), whether a transition leads here


class _Filtered(NamedTuple):
    """The results of the forward recursion at each position."""

    alpha_before: Any  # (time, tags, batch), alpha of the position before
    predicted: Any  # (time, tags, batch), the probabilities before the emission of the position is seen
    totals: Any  # (time, 1, batch), what each step is divided by
    closing: Any  # (1, batch), the same for the end scores; the logarithms of both sum to log Z
    gamma: Any  # (tags, batch), the posterior of the last position


def _scaled_forward_backward(trellis: Trellis) -> tuple[TensorLike, TensorLike, TensorLike, TensorLike]:
    """`forward_backward` with posteriors `(time of all blocks, tags, batch)`, and whether it may have underflowed."""
    blocks = number_of_blocks(trellis, "sum")
    recursion = SumBlocks(blocks) if blocks > 1 else OneLoop()
    trellis = trellis.padded(blocks)
    transitions, start, end = (ops.exp(x) for x in (trellis.transitions, trellis.start, trellis.end))
    emissions, linked = tags_first(ops.exp(trellis.emissions)), time_first(trellis.linked)[:, None]
    factors = _Factors(transitions, start, end, emissions, linked)
    opening = ops.sum(factors.start)
    filtered = _filter(recursion, factors, ops.transpose(trellis.no_rows() + factors.start / opening))
    gamma, ratios = _smooth(recursion, factors, filtered)
    # (batch, from, time) @ (batch, time, to)
    pairs = loop_ops.matmul(ops.transpose(filtered.alpha_before, (2, 1, 0)), ops.transpose(ratios, (2, 0, 1)))
    totals, closing = (ops.log(ops.maximum(x, _TINY)) for x in (filtered.totals, filtered.closing))
    log_z = ops.log(opening) + (ops.sum(totals, axis=0) + closing)[0]  # (batch,)
    return log_z, gamma, factors.transitions * pairs, _underflow(trellis, factors, filtered)


def _filter(recursion: OneLoop | SumBlocks, factors: _Factors, first: TensorLike) -> _Filtered:
    step = _product(ops.transpose(factors.transitions))

    def forward(alpha: TensorLike, inputs: Any) -> Any:
        emission, link = inputs  # (tags, batch), (1, batch)
        predicted = loop_ops.where(link, step(alpha), alpha)  # (tags, batch)
        reached = predicted * emission  # (tags, batch)
        total = loop_ops.sum(reached, axis=-2, keepdims=True)  # (1, batch)
        return reached / total, (alpha, predicted, total)  # NaN if the total is 0, which `_underflow` notices

    last, (alpha_before, predicted, totals) = recursion.forward(forward, first, (factors.emissions, factors.linked))
    last = last * factors.end[:, None]  # (tags, batch)
    closing = ops.sum(last, axis=0, keepdims=True)  # (1, batch)
    return _Filtered(alpha_before, predicted, totals, closing, last / ops.maximum(closing, _TINY))


def _smooth(recursion: OneLoop | SumBlocks, factors: _Factors, filtered: _Filtered) -> tuple[TensorLike, TensorLike]:
    """The posterior of each tag, and the same divided by its prediction, 0 where no transition leads."""
    step_back = _product(factors.transitions)
    inverse = 1 / (filtered.predicted + _TINY)  # (time, tags, batch)

    def backward(gamma: TensorLike, inputs: Any) -> Any:
        alpha, inverse, link = inputs  # (tags, batch) twice, (1, batch)
        ratio = gamma * inverse
        return loop_ops.where(link, alpha * step_back(ratio), gamma), (gamma, ratio)

    gamma, ratios = recursion.backward(backward, filtered.gamma, (filtered.alpha_before, inverse, factors.linked))
    total = ops.sum(gamma, axis=1, keepdims=True)  # (time, 1, batch), 1 but for rounding, which adds up over positions
    return gamma / total, ops.where(factors.linked, ratios / total, 0.0)


def _underflow(trellis: Trellis, factors: _Factors, filtered: _Filtered) -> TensorLike:
    """Whether a path that matters may have underflowed to 0 in probability space; a scalar bool.

    A tag that underflows cannot matter later if all transitions are within 30 nats of the best one. If some transitions
    are forbidden, such a tag may be the only one that can go on: then no reachable tag may underflow.
    """
    steep: TensorLike = False
    forbidden: TensorLike = False
    for scores in (trellis.transitions, trellis.start, trellis.end):
        legal = scores > IS_FORBIDDEN
        steep = steep | (ops.min(ops.where(legal, scores, 0.0)) < -_LARGEST_GAP)
        forbidden = forbidden | ops.any(~legal)
    vanishes = ops.cond(forbidden, lambda: _a_tag_vanishes(trellis, factors, filtered), lambda: steep)
    positive = ops.all(filtered.totals > _TINY) & ops.all(filtered.closing > _TINY)
    return ~positive | steep | vanishes


def _a_tag_vanishes(trellis: Trellis, factors: _Factors, filtered: _Filtered) -> TensorLike:
    """Whether the probability of a tag that can be reached is close to the smallest float; a scalar bool."""
    legal = tags_first((trellis.emissions > IS_FORBIDDEN) & trellis.mask[:, :, None])
    # of a total below 1, the fraction may be below any float
    least = _SMALLEST_SHARE * ops.maximum(filtered.totals, 1.0)  # (time, 1, batch)
    predicted = filtered.predicted
    return ops.any(legal & (predicted > 0) & (predicted * factors.emissions <= least))


def _product(matrix: TensorLike) -> Callable[[TensorLike], TensorLike]:
    """The function `x -> matrix @ x` for `x (..., tags, batch)`, in the form that is fastest inside a loop."""
    if matrix.shape[0] > FEW_TAGS:
        return lambda columns: loop_ops.matmul(matrix, columns)
    return lambda columns: loop_ops.sum(matrix[:, :, None] * columns[..., None, :, :], axis=-2)


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

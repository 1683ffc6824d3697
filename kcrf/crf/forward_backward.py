"""log Z and expected counts of a chain, by a forward and a backward recursion (Rabiner 1989, section V.A).

The forward recursion divides by its sum at each position: alpha becomes the probability of each tag given the emissions
up to its position, and the logarithms of these sums add up to log Z. The backward recursion needs no beta: it goes from
gamma, the posterior of one position, to gamma of the position before. If a probability that matters may have
underflowed (`_underflow`), both run again in log space.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from kcrf.backend import FEW_TAGS, TensorLike, loop_ops, ops
from kcrf.chains import IS_FORBIDDEN
from kcrf.crf.blocks import OneLoop, SumBlocks, number_of_blocks
from kcrf.crf.chain import kernels_for
from kcrf.crf.log_space import log_forward_backward
from kcrf.crf.scores import Counts, with_gradient
from kcrf.crf.trellis import Trellis, tags_first, time_first

_TINY = 1e-37  # the smallest normal float32 is 1.2e-38
_SMALLEST_SHARE = 1e-22  # the smallest probability of a reachable tag; times exp(-30) it is still above _TINY
_LARGEST_GAP = 30.0  # the largest difference of transition scores in nats; exp(-30) = 1e-13


def log_partition_of(trellis: Trellis) -> TensorLike:
    """log Z with the gradient of the expected counts, `(batch,)`."""
    return with_gradient(trellis, forward_backward(trellis))


def forward_backward(trellis: Trellis) -> Counts:
    """log Z and the expected counts: the posterior of each tag, 0 where masked, and transitions. No gradient."""
    if kernels := kernels_for(trellis.emissions):
        return kernels.forward_backward(trellis)
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
    steps = _expected_steps(factors, filtered, ratios)
    totals, closing = (ops.log(ops.maximum(x, _TINY)) for x in (filtered.totals, filtered.closing))
    log_z = ops.log(opening) + (ops.sum(totals, axis=0) + closing)[0]  # (batch,)
    return log_z, gamma, steps, _underflow(trellis, factors, filtered)


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


def _expected_steps(factors: _Factors, filtered: _Filtered, ratios: TensorLike) -> TensorLike:
    """The expected number of each transition, `(batch, from, to)`."""
    # (batch, from, time) @ (batch, time, to)
    pairs = ops.matmul(ops.transpose(filtered.alpha_before, (2, 1, 0)), ops.transpose(ratios, (2, 0, 1)))
    return factors.transitions * pairs


def _underflow(trellis: Trellis, factors: _Factors, filtered: _Filtered) -> TensorLike:
    """Whether a path that matters may have underflowed to 0 in probability space; a scalar bool.

    If all transitions are within 30 nats of the best one, a tag whose probability underflows at one position cannot
    matter later, so the result is exact. If some transitions are forbidden, such a tag may be the only one that can
    go on: then no reachable tag may underflow.
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

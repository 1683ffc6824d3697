"""The linear-chain conditional random field as pure functions of tensors (Lafferty et al., 2001).

All take `emissions (batch, time, tags)`, `mask (batch, time)` bool with True = real (None: all are), `transitions
(tags, tags)` where `[i, j]` is the score of going from tag i to tag j, and optional `start (tags,)`, `end (tags,)`.

Masked positions are removed from the sentence: the positions on both sides of one become neighbours. This covers right
padding, left padding and holes. A sentence without a real position has one path, the empty one: score 0, log Z 0. A
forbidden tag or transition has the score `FORBIDDEN`, or any score below it.

Implementation: the forward and the backward recursion work on normalized probabilities, with one matrix product per
position (Rabiner 1989, section V.A). This is exact unless a probability that matters underflows. If that cannot be
excluded (`_underflows`), both recursions run again in log space. The gradient of log Z is the expected counts, which
the backward recursion computes, so nothing differentiates through a loop. Where a step of a loop costs more than its
arithmetic, few tags and long sentences are computed in blocks of time (`blocks`). Second derivatives are not available.
"""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

from kcrf.backend import Function, Tensor, graph, ops
from kcrf.crf.chain import FORBIDDEN, Chain
from kcrf.crf.counts import (
    expected_score,
    forward_backward,
    log_partition_of,
    onward_sums,
    path_counts,
    path_entropy,
    restrict,
    with_gradient,
)
from kcrf.crf.paths import best_path, best_paths

__all__ = [
    "distillation_loss",
    "entropy",
    "expected_counts",
    "log_likelihood",
    "log_partition",
    "log_probability_within",
    "log_sums_onward",
    "marginals",
    "path_score",
    "top_k_paths",
    "viterbi",
]


def _accepts_empty(*time_axes: int | None) -> Callable[[Function], Function]:
    """Decorator: a batch of 0 sentences or 0 positions is computed with a masked position in their place.

    Args:
        *time_axes: For each output of the function its time axis, or None.
    """

    def decorate(function):
        @wraps(function)
        def call(emissions, *args, **kwargs):
            emissions = ops.convert_to_tensor(emissions)
            if len(emissions.shape) != 3 or 0 not in emissions.shape[:2]:
                return function(emissions, *args, **kwargs)
            batch, time, size = emissions.shape
            arguments = signature(function).bind(emissions, *args, **kwargs).arguments
            shape = (batch or 1, time or 1)
            replaced = {"emissions": (*shape, size), "tags": shape, "mask": shape, "allowed": (*shape, size)}
            replaced.update(expected_tags=(*shape, size), expected_steps=(batch or 1, size, size))
            zeros = {name: ops.zeros(shape, dtype="int32") for name, shape in replaced.items() if name in arguments}
            outputs = function(**{**arguments, **zeros})
            outputs = outputs if isinstance(outputs, tuple) else (outputs,)
            cut = [
                x[:batch] if axis is None else x[(slice(batch), *[slice(None)] * (axis - 1), slice(time))]
                for x, axis in zip(outputs, time_axes, strict=True)
            ]
            return cut[0] if len(cut) == 1 else tuple(cut)

        return call

    return decorate


@_accepts_empty(None)
@graph
def path_score(
    emissions: Tensor,
    tags: Tensor,
    mask: Tensor | None,
    transitions: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
) -> Tensor:
    """The score of one path per sentence: its emissions, its transitions, start and end.

    Args:
        emissions: `(batch, time, tags)`.
        tags: `(batch, time)` ints in `[0, tags)`; values at masked positions are ignored.
        mask: `(batch, time)` bool or None.
        transitions: `(tags, tags)`, from row to column.
        start: `(tags,)` or None.
        end: `(tags,)` or None.

    Returns:
        `(batch,)`.

    >>> float(path_score([[[1.0, 0.0], [0.0, 2.0]]], [[0, 1]], None, [[0.0, 5.0], [0.0, 0.0]])[0])
    8.0
    """
    return path_counts(Chain(emissions, mask, transitions, start, end), ops.cast(tags, "int32"))[0]


@_accepts_empty(None)
@graph
def log_partition(
    emissions: Tensor, mask: Tensor | None, transitions: Tensor, start: Tensor | None = None, end: Tensor | None = None
) -> Tensor:
    """log Z, the logarithm of the sum of exp(score) over all paths; 0 for a sentence without real positions.

    Differentiable once. Returns `(batch,)`.

    >>> round(float(log_partition([[[0.0, 0.0], [0.0, 0.0]]], None, [[0.0, 0.0], [0.0, 0.0]])[0]), 4)  # log 4
    1.3863
    """
    return log_partition_of(Chain(emissions, mask, transitions, start, end))


@_accepts_empty(None)
@graph
def log_likelihood(
    emissions: Tensor,
    tags: Tensor,
    mask: Tensor | None,
    transitions: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
) -> Tensor:
    """The log probability of the tags. Negative tags are unknown: the likelihood sums over all their possible values.

    The arguments are those of `path_score`. If all tags of a sentence are unknown, the result is 0. Differentiable
    once.

    Returns:
        `(batch,)`, at most 0 except for rounding.

    >>> round(float(log_likelihood([[[0.0, 0.0]]], [[1]], None, [[0.0, 0.0], [0.0, 0.0]])[0]), 4)  # -log 2
    -0.6931
    """
    chain = Chain(emissions, mask, transitions, start, end).centred()
    tags = ops.cast(tags, "int32")
    unknown = ops.any(chain.mask & (tags < 0))
    observed = ops.cond(
        unknown,
        lambda: forward_backward(chain.with_emissions(restrict(chain, tags))),
        lambda: path_counts(chain.detached(), tags),
    )
    return with_gradient(chain, [o - e for o, e in zip(observed, forward_backward(chain), strict=True)])


def marginals(
    emissions: Tensor, mask: Tensor | None, transitions: Tensor, start: Tensor | None = None, end: Tensor | None = None
) -> Tensor:
    """The posterior probability of each tag at each position: `(batch, time, tags)`, 0 where masked. No gradient."""
    return expected_counts(emissions, mask, transitions, start, end)[0]


@_accepts_empty(1, None)
@graph
def expected_counts(
    emissions: Tensor, mask: Tensor | None, transitions: Tensor, start: Tensor | None = None, end: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The expected number of times that each tag and each transition occurs, without gradient.

    Returns:
        marginals: `(batch, time, tags)`, the posterior of each tag, 0 where masked.
        steps: `(batch, tags, tags)`, the expected number of transitions from tag i to tag j.
    """
    _, tags, steps = forward_backward(Chain(emissions, mask, transitions, start, end))
    return tags, steps


@_accepts_empty(None)
@graph
def distillation_loss(
    emissions: Tensor,
    expected_tags: Tensor,
    expected_steps: Tensor,
    mask: Tensor | None,
    transitions: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
) -> Tensor:
    """The cross-entropy between the distributions over paths of a teacher and of the given scores, the student.

    It is the mean of minus the log probability that the student gives a path, over paths as the teacher draws them.
    The score of a path is a sum over its tags and its steps, so this mean needs no more of the teacher than how often
    it expects each: log Z of the student minus the student's scores, weighted by the teacher's counts. It is exact. The
    gradient is the difference of the expected counts, zero where the student equals the teacher; the value there is the
    entropy of the teacher. The method is Hinton et al. 2015, https://arxiv.org/abs/1503.02531, on whole sequences.

    Args:
        emissions: `(batch, time, tags)`, of the student, as `mask` and all that follows it.
        expected_tags: `(batch, time, tags)`, the teacher's posterior of each tag; values at masked positions are
            ignored.
        expected_steps: `(batch, tags, tags)`, the teacher's expected number of transitions from tag i to tag j. Both
            are what `expected_counts` returns for the teacher, with the same mask.
        mask: `(batch, time)` bool or None.
        transitions: `(tags, tags)`, from row to column.
        start: `(tags,)` or None.
        end: `(tags,)` or None.

    Returns:
        `(batch,)`, differentiable once. Beyond 1e8 where the student forbids what the teacher allows.

    >>> tags, steps = expected_counts([[[1.0, 0.0]]], None, [[0.0, 0.0], [0.0, 0.0]])
    >>> loss = distillation_loss([[[0.0, 0.0]]], tags, steps, None, [[0.0, 0.0], [0.0, 0.0]])
    >>> round(float(loss[0]), 4)  # log 2: the student has no preference
    0.6931
    """
    chain = Chain(emissions, mask, transitions, start, end).centred()
    tags, steps = (ops.cast(counts, "float32") for counts in (expected_tags, expected_steps))
    observed = expected_score(chain.detached(), tags, steps), tags, steps
    return -with_gradient(chain, [o - e for o, e in zip(observed, forward_backward(chain), strict=True)])


@_accepts_empty(None)
@graph
def entropy(
    emissions: Tensor, mask: Tensor | None, transitions: Tensor, start: Tensor | None = None, end: Tensor | None = None
) -> Tensor:
    """The entropy of the distribution over paths in nats, `(batch,)`, at least 0. No gradient.

    >>> round(float(entropy([[[0.0, 0.0], [0.0, 0.0]]], None, [[0.0, 0.0], [0.0, 0.0]])[0]), 4)  # log 4
    1.3863
    """
    return path_entropy(Chain(emissions, mask, transitions, start, end).detached().centred())


@_accepts_empty(1)
@graph
def viterbi(
    emissions: Tensor, mask: Tensor | None, transitions: Tensor, start: Tensor | None = None, end: Tensor | None = None
) -> Any:
    """The best path of each sentence: tags `(batch, time)` int32, -1 where masked. Ties go to the smaller tag.

    >>> ops.convert_to_numpy(viterbi([[[1.0, 0.0], [0.0, 0.9]]], None, [[1.0, 0.0], [0.0, 0.0]])).tolist()
    [[0, 0]]
    """
    return best_path(Chain(emissions, mask, transitions, start, end).detached())


@_accepts_empty(2, None)
@graph
def top_k_paths(
    emissions: Tensor,
    k: int,
    mask: Tensor | None,
    transitions: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The k best paths of each sentence, best first. No gradient.

    Returns:
        tags: `(batch, k, time)` int32, -1 where masked.
        scores: `(batch, k)`, as `path_score` gives them. If a sentence has fewer than k allowed paths, the
            others have tags -1 and score -inf.
    """
    if k < 1:
        raise ValueError(f"`top_k_paths` needs k of at least 1. Received: k={k}")
    chain = Chain(emissions, mask, transitions, start, end).detached()
    tags, exists = best_paths(chain, k)
    flat = chain.repeat(k)
    scores = ops.reshape(path_counts(flat, ops.reshape(tags, (-1, ops.shape(tags)[2])))[0], (-1, k))
    return ops.where(exists[:, :, None], tags, -1), ops.where(exists, scores, -float("inf"))


@_accepts_empty(None)
@graph
def log_probability_within(
    emissions: Tensor,
    allowed: Tensor,
    mask: Tensor | None,
    transitions: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
) -> Tensor:
    """The log probability that every tag is one of those allowed at its position: log Z of those paths minus log Z.

    Args:
        emissions: `(batch, time, tags)`.
        allowed: `(batch, time, tags)` bool; values at masked positions are ignored.
        mask: `(batch, time)` bool or None.
        transitions: `(tags, tags)`, from row to column.
        start: `(tags,)` or None.
        end: `(tags,)` or None.

    Returns:
        `(batch,)`, at most 0 except for rounding; below -1e8 if the transitions forbid all these paths.

    >>> log_p = log_probability_within([[[0.0, 0.0]]], [[[True, False]]], None, [[0.0, 0.0], [0.0, 0.0]])
    >>> round(float(log_p[0]), 4)  # -log 2
    -0.6931
    """
    chain = Chain(emissions, mask, transitions, start, end).centred()
    free = ops.cast(allowed, "bool") | ~chain.mask[:, :, None]
    within = chain.with_emissions(ops.where(free, chain.emissions, FORBIDDEN))
    return log_partition_of(within) - log_partition_of(chain)


@_accepts_empty(1)
@graph
def log_sums_onward(
    emissions: Tensor, mask: Tensor | None, transitions: Tensor, start: Tensor | None = None, end: Tensor | None = None
) -> Tensor:
    """The log of the sum of exp(score) over all ways to go on after each position, given its tag. No gradient.

    Up to a constant for each position, so that `softmax(transitions[i] + emissions[t] + log_sums_onward[t])` is the
    posterior of the tag at position t, given that the tag of the position before it is i.

    Returns:
        `(batch, time, tags)`; at masked positions without meaning.

    >>> sums = log_sums_onward([[[0.0, 0.0], [0.0, 0.0]]], None, [[3.0, 3.0], [1.0, 1.0]])
    >>> round(float(sums[0, 0, 0] - sums[0, 0, 1]), 4)
    2.0
    """
    return onward_sums(Chain(emissions, mask, transitions, start, end).detached().centred())

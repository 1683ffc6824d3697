"""The linear-chain conditional random field as pure functions of tensors (Lafferty et al., 2001).

Each function takes a `kcrf.crf.Chain`, or instead the arrays of a chain:

    f(chain)                 f(emissions, mask, transitions, start=None, end=None)
    f(chain, tags)           f(emissions, tags, mask, transitions, start=None, end=None)

with `emissions (batch, time, tags)`, `mask (batch, time)` bool with True = real (None: all are), `transitions (tags,
tags)` where `[i, j]` is the score of going from tag i to tag j, and optional `start (tags,)`, `end (tags,)`.

Masked positions are removed from the sentence: the positions on both sides of one become neighbors. This covers right
padding, left padding and holes. A sentence without a real position has one path, the empty one: score 0, log Z 0. A
forbidden tag or transition has the score `FORBIDDEN`, or any score below it.

`reference` below is the definition of the results, for one sentence in float64; tests compare everything with it.

Implementation: recursions over probabilities (`forward_backward`), again over logarithms if one underflowed, in
`blocks` where a step costs more than its arithmetic. With torch, operators (`torch_kernels`): one kernel on CUDA, and
the recursions of `kcrf.chains` on a CPU. The gradient of log Z is the expected counts, so nothing differentiates
through a loop. Second derivatives are not available.
"""

from typing import Any

import numpy as np

from kcrf.backend import Tensor, TensorLike, ops
from kcrf.crf.best_paths import best_path, best_paths
from kcrf.crf.chain import Chain, takes_chain
from kcrf.crf.forward_backward import forward_backward, log_beta, log_partition_of, path_entropy
from kcrf.crf.trellis import Counts, Trellis, expected_score, path_counts, restrict, with_gradient


def reference(emissions: Any, transitions: Any, start: Any, end: Any) -> dict[str, Any]:
    """The results for one sentence without masked positions, by name, in NumPy float64 and log space."""
    emissions, transitions, start, end = (np.asarray(x, "float64") for x in (emissions, transitions, start, end))
    log_sum = np.logaddexp.reduce
    alpha = [start + emissions[0]]  # the log of the sum over all paths up to a position, given its tag
    best = [start + emissions[0]]  # the score of the best of them
    for row in emissions[1:]:
        alpha.append(log_sum(alpha[-1][:, None] + transitions, axis=0) + row)
        best.append((best[-1][:, None] + transitions).max(axis=0) + row)
    beta = [end]  # the log of the sum over all paths after a position, given its tag
    for row in emissions[:0:-1]:
        beta.append(log_sum(transitions + row + beta[-1], axis=1))
    beta.reverse()
    log_z = log_sum(alpha[-1] + end)
    steps = np.zeros_like(transitions)
    for before, row, after in zip(alpha[:-1], emissions[1:], beta[1:], strict=True):
        steps += np.exp(before[:, None] + transitions + row + after - log_z)
    path = [int((best[-1] + end).argmax())]
    for scores in best[-2::-1]:
        path.append(int((scores + transitions[:, path[-1]]).argmax()))
    return {
        "log_partition": log_z,
        "marginals": np.exp(np.array(alpha) + np.array(beta) - log_z),
        "steps": steps,
        "viterbi": path[::-1],
        "score": (best[-1] + end).max(),
    }


@takes_chain(None)
def path_score(chain: Chain, tags: TensorLike) -> Tensor:
    """The score of one path per sentence: its emissions, its transitions, start and end.

    Args:
        chain: The `Chain`, or its arrays after `tags`.
        tags: `(batch, time)` ints in `[0, tags)`; values at masked positions are ignored.

    Returns:
        `(batch,)`.

    >>> float(path_score([[[1.0, 0.0], [0.0, 2.0]]], [[0, 1]], None, [[0.0, 5.0], [0.0, 0.0]])[0])
    8.0
    """
    return path_counts(Trellis(chain), ops.cast(tags, "int32"))[0]


@takes_chain(None)
def log_partition(chain: Chain) -> Tensor:
    """log Z: the log of the sum of exp(score) over all paths, `(batch,)`. Differentiable once.

    >>> round(float(log_partition([[[0.0, 0.0], [0.0, 0.0]]], None, [[0.0, 0.0], [0.0, 0.0]])[0]), 4)  # log 4
    1.3863
    """
    return log_partition_of(Trellis(chain))


@takes_chain(None)
def log_likelihood(chain: Chain, tags: TensorLike) -> Tensor:
    """The log probability of the tags. Negative tags are unknown: the likelihood sums over all their possible values.

    If all tags of a sentence are unknown, the result and its gradient are 0. Differentiable once.

    Args:
        chain: The `Chain`, or its arrays after `tags`.
        tags: `(batch, time)`, whole numbers of any type; values at masked positions are ignored.

    Returns:
        `(batch,)`, at most 0 except for rounding; NaN without a gradient for a number that is no tag.

    >>> round(float(log_likelihood([[[0.0, 0.0]]], [[1]], None, [[0.0, 0.0], [0.0, 0.0]])[0]), 4)  # -log 2
    -0.6931
    """
    trellis, wrong = Trellis(chain).centered(), is_no_tag(tags, chain.emissions.shape[-1])
    tags = ops.cast(ops.where(wrong, -1.0, ops.cast(tags, "float32")), "int32")
    observed = ops.cond(
        ops.any(trellis.mask & (tags < 0)),
        lambda: forward_backward(trellis.with_emissions(restrict(trellis, tags))),
        lambda: path_counts(trellis.detached(), tags),
    )
    likelihood = with_gradient(trellis, _difference(observed, forward_backward(trellis)))
    # Exactly 0 without a known tag: Adam would make whole steps of gradients that are rounding errors.
    likelihood = ops.where(ops.any(trellis.mask & (tags >= 0), axis=1), likelihood, 0.0)
    return ops.where(ops.any(trellis.mask & wrong, axis=1), float("nan"), likelihood)


@takes_chain(1)
def marginals(chain: Chain) -> Tensor:
    """The posterior probability of each tag at each position: `(batch, time, tags)`, 0 where masked. No gradient."""
    return forward_backward(chain)[1]


@takes_chain(1, None)
def expected_counts(chain: Chain) -> tuple[Tensor, Tensor]:
    """How often each tag `(batch, time, tags)` and each transition `(batch, from, to)` is expected. No gradient."""
    return forward_backward(chain)[1:]


@takes_chain(None)
def distillation_loss(chain: Chain, expected_tags: TensorLike, expected_steps: TensorLike) -> Tensor:
    """The cross-entropy between the distributions over paths of a teacher and of the given scores, the student.

    This is Hinton et al. 2015, https://arxiv.org/abs/1503.02531, on whole sequences, and exact: the score of a path is
    a sum over its tags and its steps, so the expected counts of the teacher suffice. Where the student equals the
    teacher, the gradient is zero, and the value is the entropy of the teacher.

    Args:
        chain: The `Chain` of the student, or its arrays after `expected_steps`.
        expected_tags: `(batch, time, tags)`, the teacher's posterior of each tag; values at masked positions are
            ignored.
        expected_steps: `(batch, tags, tags)`, the teacher's expected number of transitions from tag i to tag j. Both
            are the results of `expected_counts` for the teacher, with the same mask.

    Returns:
        `(batch,)`, differentiable once. Above 1e8 if the student forbids tags or transitions that the teacher allows.

    >>> tags, steps = expected_counts([[[1.0, 0.0]]], None, [[0.0, 0.0], [0.0, 0.0]])
    >>> loss = distillation_loss([[[0.0, 0.0]]], tags, steps, None, [[0.0, 0.0], [0.0, 0.0]])
    >>> round(float(loss[0]), 4)  # log 2: the student has no preference
    0.6931
    """
    trellis = Trellis(chain).centered()
    tags, steps = (ops.cast(counts, "float32") for counts in (expected_tags, expected_steps))
    observed = expected_score(trellis.detached(), tags, steps), tags, steps
    return -with_gradient(trellis, _difference(observed, forward_backward(trellis)))


@takes_chain(None)
def entropy(chain: Chain) -> Tensor:
    """The entropy of the distribution over paths in nats, `(batch,)`, at least 0. No gradient.

    >>> round(float(entropy([[[0.0, 0.0], [0.0, 0.0]]], None, [[0.0, 0.0], [0.0, 0.0]])[0]), 4)  # log 4
    1.3863
    """
    return path_entropy(Trellis(chain).detached().centered())


@takes_chain(1)
def viterbi(chain: Chain) -> Tensor:
    """The best path of each sentence: tags `(batch, time)` int32, -1 where masked. Ties go to the smaller tag.

    A sentence with a score that is NaN or infinite, as of a model that diverged, has no best path: its tags are -1.

    >>> ops.convert_to_numpy(viterbi([[[1.0, 0.0], [0.0, 0.9]]], None, [[1.0, 0.0], [0.0, 0.0]])).tolist()
    [[0, 0]]
    """
    return best_path(Trellis(chain).detached())


@takes_chain(2, None)
def top_k_paths(chain: Chain, k: int) -> tuple[Tensor, Tensor]:
    """The k best paths of each sentence, best first. No gradient.

    Args:
        chain: The `Chain`, or its arrays after `k`.
        k: The number of paths, at least 1.

    Returns:
        tags: `(batch, k, time)` int32, -1 where masked.
        scores: `(batch, k)`, as `path_score` returns them. If a sentence has fewer than k allowed paths, the
            missing paths have tags -1 and score -inf.
    """
    if k < 1:
        raise ValueError(f"`top_k_paths` needs k of at least 1. Received: k={k}")
    trellis = Trellis(chain).detached()
    tags, exists = best_paths(trellis, k)
    scores = ops.reshape(path_counts(trellis.repeat(k), ops.reshape(tags, (-1, ops.shape(tags)[2])))[0], (-1, k))
    return ops.where(exists[:, :, None], tags, -1), ops.where(exists, scores, -float("inf"))


@takes_chain(1)
def log_sums_onward(chain: Chain) -> Tensor:
    """The log of the sum of exp(score) over all continuations after each tag, `(batch, time, tags)`. No gradient.

    This is the beta of the forward-backward algorithm, up to a constant for each position: the tag after tag i has the
    posterior `softmax(transitions[i] + emissions[t] + log_sums_onward[t])`. It is undefined at masked positions.

    >>> sums = log_sums_onward([[[0.0, 0.0], [0.0, 0.0]]], None, [[3.0, 3.0], [1.0, 1.0]])
    >>> round(float(sums[0, 0, 0] - sums[0, 0, 1]), 4)
    2.0
    """
    return log_beta(Trellis(chain).detached().centered())


def is_no_tag(tags: Tensor, size: int) -> Tensor:
    """Where numbers `(batch, time)` are not negative, and no tags either."""
    numbers = ops.cast(tags, "float32")
    return (numbers >= size) | (numbers != ops.floor(numbers))  # NaN is not equal to itself


def _difference(observed: Counts, expected: Counts) -> Counts:
    """The counts of the gold paths minus the expected counts: value and gradient of a log likelihood."""
    return observed[0] - expected[0], observed[1] - expected[1], observed[2] - expected[2]

"""The linear-chain conditional random field as pure functions of tensors (Lafferty et al., 2001).

All take `emissions (batch, time, tags)`, `mask (batch, time)` bool with True = real (None: all are), `transitions
(tags, tags)` where `[i, j]` scores going from tag i to tag j, and optional `start (tags,)`, `end (tags,)`.

A masked position is not in the chain: its neighbours meet. So right padding, left padding and holes are one rule, and
every result equals that of the sentence with the masked positions cut out. A sentence without a real position has the
empty path alone: score 0, log Z 0. A forbidden tag or step has the score `FORBIDDEN`, or anything below it.

How it is computed. A loop over time filters from the left (the probability of each tag, given what stands up to its
position); a second loop smooths what it left from the right. They work on probabilities, one matrix product a step,
which is exact as long as nothing that matters is too small for a float; where that cannot be excluded (`_underflows`),
both run once more on logarithms. Nothing differentiates through the loops: the gradient of log Z is the expected counts
(the marginals), which the second loop gives. So first derivatives are right and second derivatives are not available.
"""

from kcrf.backend import graph, ops
from kcrf.crf.chain import FORBIDDEN, Chain
from kcrf.crf.counts import counts, expected_score, log_partition_of, path_counts, restrict, with_gradient
from kcrf.crf.paths import best_path, best_paths

__all__ = [
    "entropy",
    "expected_counts",
    "log_likelihood",
    "log_partition",
    "log_probability_within",
    "marginals",
    "path_score",
    "top_k_paths",
    "viterbi",
]


@graph
def path_score(emissions, tags, mask, transitions, start=None, end=None):
    """The score of one path per sentence: its emissions, its transitions, start and end.

    Args:
        emissions: `(batch, time, tags)`.
        tags: `(batch, time)` ints in `[0, tags)`; what stands at masked positions is ignored.
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


@graph
def log_partition(emissions, mask, transitions, start=None, end=None):
    """log Z, the logarithm of the summed exp(score) of all paths; 0 for a sentence without real positions.

    Its gradient is that of the expected counts, first order only. Returns `(batch,)`.

    >>> round(float(log_partition([[[0.0, 0.0], [0.0, 0.0]]], None, [[0.0, 0.0], [0.0, 0.0]])[0]), 4)  # log 4
    1.3863
    """
    return log_partition_of(Chain(emissions, mask, transitions, start, end))


@graph
def log_likelihood(emissions, tags, mask, transitions, start=None, end=None):
    """The log probability of the tags, summed over what the negative (unknown) ones among them may be.

    Args are those of `path_score`, but a negative tag at a real position means that its tag is not known: the
    likelihood then sums over its tags. With every tag unknown it is 0.

    Returns:
        `(batch,)`, at most 0 but for rounding.

    >>> round(float(log_likelihood([[[0.0, 0.0]]], [[1]], None, [[0.0, 0.0], [0.0, 0.0]])[0]), 4)  # -log 2
    -0.6931
    """
    chain = Chain(emissions, mask, transitions, start, end).centred()
    tags = ops.cast(tags, "int32")
    unknown = ops.any(chain.mask & (tags < 0))
    observed = ops.cond(
        unknown,
        lambda: counts(chain.with_emissions(restrict(chain, tags))),
        lambda: path_counts(chain.detached(), tags),
    )
    return with_gradient(chain, [o - e for o, e in zip(observed, counts(chain), strict=True)])


def marginals(emissions, mask, transitions, start=None, end=None):
    """The posterior probability of each tag at each position: `(batch, time, tags)`, 0 where masked. No gradient."""
    return expected_counts(emissions, mask, transitions, start, end)[0]


@graph
def expected_counts(emissions, mask, transitions, start=None, end=None):
    """What the model expects of a sentence, without gradient.

    Returns:
        marginals: `(batch, time, tags)`, the posterior of each tag, 0 where masked.
        steps: `(batch, tags, tags)`, how often the sentence goes from tag i to tag j, summed over time.
    """
    _, tags, steps = counts(Chain(emissions, mask, transitions, start, end))
    return tags, steps


@graph
def entropy(emissions, mask, transitions, start=None, end=None):
    """The entropy of the distribution over paths in nats, `(batch,)`: log Z minus the expected score. No gradient."""
    chain = Chain(emissions, mask, transitions, start, end).centred().detached()
    log_z, tags, steps = counts(chain)
    return ops.maximum(log_z - expected_score(chain, tags, steps), 0.0)


@graph
def viterbi(emissions, mask, transitions, start=None, end=None):
    """The best path of each sentence: tags `(batch, time)` int32, -1 where masked. Ties go to the smaller tag.

    >>> ops.convert_to_numpy(viterbi([[[1.0, 0.0], [0.0, 0.9]]], None, [[1.0, 0.0], [0.0, 0.0]])).tolist()
    [[0, 0]]
    """
    return best_path(Chain(emissions, mask, transitions, start, end).detached())


@graph
def top_k_paths(emissions, k, mask, transitions, start=None, end=None):
    """The k best paths of each sentence, best first. No gradient.

    Returns:
        tags: `(batch, k, time)` int32, -1 where masked.
        scores: `(batch, k)`, as `path_score` gives them. Where a sentence has fewer than k paths that nothing forbids,
            the others have tags -1 and score -inf.
    """
    if k < 1:
        raise ValueError(f"`top_k_paths` needs k of at least 1. Received: k={k}")
    chain = Chain(emissions, mask, transitions, start, end).detached()
    tags, exists = best_paths(chain, k)
    flat = chain.repeat(k)
    scores = ops.reshape(path_counts(flat, ops.reshape(tags, (-1, ops.shape(tags)[2])))[0], (-1, k))
    return ops.where(exists[:, :, None], tags, -1), ops.where(exists, scores, -float("inf"))


@graph
def log_probability_within(emissions, allowed, mask, transitions, start=None, end=None):
    """The log probability that every tag is one of those allowed at its position: log Z of those paths minus log Z.

    Args:
        emissions: `(batch, time, tags)`.
        allowed: `(batch, time, tags)` bool; what stands at masked positions is ignored.
        mask: `(batch, time)` bool or None.
        transitions: `(tags, tags)`, from row to column.
        start: `(tags,)` or None.
        end: `(tags,)` or None.

    Returns:
        `(batch,)`, at most 0 but for rounding; below -1e8 where the transitions forbid all that is allowed.

    >>> log_p = log_probability_within([[[0.0, 0.0]]], [[[True, False]]], None, [[0.0, 0.0], [0.0, 0.0]])
    >>> round(float(log_p[0]), 4)  # -log 2
    -0.6931
    """
    chain = Chain(emissions, mask, transitions, start, end).centred()
    free = ops.cast(allowed, "bool") | ~chain.mask[:, :, None]
    within = chain.with_emissions(ops.where(free, chain.emissions, FORBIDDEN))
    return log_partition_of(within) - log_partition_of(chain)

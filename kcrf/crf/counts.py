"""log Z, expected counts and entropy of a chain, by recursions forward and backward in time."""

from kcrf.backend import FEW_TAGS, loop_ops, ops, scan
from kcrf.crf.blocks import OneLoop, SumBlocks, number_of_blocks
from kcrf.crf.chain import FORBIDDEN, IS_FORBIDDEN, tags_first, time_first

__all__ = [
    "LONGEST",
    "TINY",
    "expected_score",
    "forward_backward",
    "log_partition_of",
    "onward_sums",
    "path_entropy",
    "path_counts",
    "previous",
    "restrict",
    "with_gradient",
]

TINY = 1e-37  # the smallest normal float32 is 1.2e-38
_SMALLEST_SHARE = 1e-22  # the smallest probability of a reachable tag; times exp(-30) it is still above TINY
_LARGEST_GAP = 30.0  # the largest difference of transition scores in nats; exp(-30) = 1e-13
_LARGEST_SURPRISE = 100.0  # nats: exp(-100) is 0 in float32, and a forbidden score must not become inf * 0
LONGEST = 2**20  # the longest sentence in a graph whose length is unknown


def path_counts(chain, tags):
    """The counts of `forward_backward` for a single path `tags (batch, time)`: its score, its tags and its steps."""
    here = ops.cast(_known(chain, tags), "float32")  # (batch, time, tags)
    before = ops.one_hot(previous(tags, chain.mask), chain.size)  # (batch, time, tags), zeros at the first position
    steps = ops.matmul(ops.swapaxes(before, 1, 2), here)  # (batch, from, to)
    return expected_score(chain, here, steps), here, steps


def log_partition_of(chain):
    """log Z of a chain with the gradient of the expected counts, `(batch,)`."""
    return with_gradient(chain, forward_backward(chain))


def with_gradient(chain, counts):
    """The value log Z with the gradient of the expected counts, `(batch,)`.

    Args:
        chain: The `Chain`.
        counts: What `forward_backward` returned. No gradient flows through it.
    """
    log_z, tags, steps = (ops.stop_gradient(x) for x in counts)
    expected = expected_score(chain, tags, steps)  # (batch,)
    return log_z + (expected - ops.stop_gradient(expected))


def expected_score(chain, tags, steps):
    """The sum of all scores, weighted by `tags (batch, time, tags)` and `steps (batch, from, to)`; `(batch,)`."""
    emitted = ops.sum(tags * chain.emissions, axis=(1, 2))  # (batch,)
    moved = ops.sum(steps * chain.transitions, axis=(1, 2))  # (batch,)
    return emitted + moved + (_boundary_score(chain, tags) if chain.bounded else 0.0)


def _boundary_score(chain, weights):
    """`start` and `end`, weighted by `weights (batch, time, tags)` at the first and last real position; `(batch,)`."""
    first = ops.sum(ops.where(chain.first[:, :, None], weights, 0.0), axis=1)  # (batch, tags)
    last = ops.sum(ops.where(chain.last[:, :, None], weights, 0.0), axis=1)  # (batch, tags)
    return ops.sum(first * chain.start + last * chain.end, axis=1)


def restrict(chain, tags):
    """The emissions with all tags forbidden except the known ones, `(batch, time, tags)`."""
    free = (tags < 0)[:, :, None] | ~chain.mask[:, :, None]  # (batch, time, 1)
    return ops.where(_known(chain, tags) | free, chain.emissions, FORBIDDEN)


def _known(chain, tags):
    """One-hot `tags (batch, time)` as bool, False where masked or unknown; `(batch, time, tags)`."""
    return (tags[:, :, None] == ops.arange(chain.size, dtype="int32")) & chain.mask[:, :, None]


def _shift(x, by=1, fill=0):
    """`x (batch, time, ...)` moved to the right by `by` positions."""
    return ops.concatenate([ops.full_like(x[:, :by], fill), x[:, :-by]], axis=1)


def previous(tags, mask):
    """The tag of the last real position before each position, -1 where there is none; `(batch, time)`."""
    found = _shift(ops.where(mask, tags, -1), fill=-1)  # (batch, time)
    reach = 1  # log(time) rounds: each doubles how many masked positions in a row are skipped
    while reach < (tags.shape[1] or LONGEST):
        found = ops.where(found < 0, _shift(found, reach, fill=-1), found)
        reach *= 2
    return found


def forward_backward(chain):
    """log Z and the expected counts of a chain, without gradient.

    Returns:
        log_z: `(batch,)`.
        tags: `(batch, time, tags)`, the posterior of each tag, 0 where masked.
        steps: `(batch, from, to)`, the expected number of each transition.
    """
    centred = chain.detached().centred()
    log_z, tags, steps, underflow = _forward_backward_scaled(centred)
    log_z, tags, steps = ops.cond(underflow, lambda: _forward_backward_log(centred), lambda: (log_z, tags, steps))
    log_z = ops.where(chain.occupied, log_z, 0.0)
    log_z = log_z if chain.offset is not None else log_z + centred.offset
    return log_z, ops.where(chain.mask[:, :, None], tags, 0.0), steps


def _forward_backward_scaled(chain):
    """`forward_backward` of a centred chain in probability space, and whether an underflow may have spoilt it.

    The forward recursion divides by its sum at each position, so `before` is alpha of the position before, `arrived`
    the prediction from it, `totals` the normalizers whose logarithms sum to log Z. The backward recursion needs no
    beta: it goes from the posterior (gamma) of one position to that of the position before.
    """
    time, blocks = chain.emissions.shape[1], number_of_blocks(chain, "sum")
    recursion = SumBlocks(blocks) if blocks > 1 else OneLoop()
    chain = chain.padded(blocks)
    matrix, start, end = (ops.exp(x) for x in (chain.transitions, chain.start, chain.end))
    step, step_back = _product(ops.transpose(matrix)), _product(matrix)
    weight, linked = tags_first(ops.exp(chain.emissions)), time_first(chain.linked)[:, None]

    def filtered(before, inputs):
        weight, link = inputs  # (tags, batch), (1, batch)
        arrived = loop_ops.where(link, step(before), before)  # (tags, batch)
        reached = arrived * weight  # (tags, batch)
        total = loop_ops.sum(reached, axis=-2, keepdims=True)  # (1, batch)
        return reached / total, (before, arrived, total)  # NaN if the total is 0, and then `spoilt` is true

    opening = ops.sum(start)
    first = ops.transpose(chain.no_rows() + start / opening)  # (tags, batch)
    last, (before, arrived, totals) = recursion.forward(filtered, first, (weight, linked))  # (time, tags, batch)
    last = last * end[:, None]  # (tags, batch)
    closing = ops.sum(last, axis=0, keepdims=True)  # (1, batch)
    totals = ops.concatenate([totals, closing[None]], axis=0)[:, 0]  # (time + 1, batch)
    onward = 1 / (arrived + TINY)  # (time, tags, batch)

    def smoothed(tags, inputs):
        before, onward, link = inputs  # (tags, batch) twice, (1, batch)
        return loop_ops.where(link, before * step_back(tags * onward), tags), tags

    gamma = last / ops.maximum(closing, TINY)  # (tags, batch)
    tags = recursion.backward(smoothed, gamma, (before, onward, linked))  # (time, tags, batch)
    onward = ops.where(linked, tags * onward, 0.0)  # (time, tags, batch)
    # (batch, from, time) @ (batch, time, to)
    steps = matrix * ops.matmul(ops.transpose(before, (2, 1, 0)), ops.transpose(onward, (2, 0, 1)))
    log_z = ops.log(opening) + ops.sum(ops.log(ops.maximum(totals, TINY)), axis=0)  # (batch,)

    def vanishes():
        legal = tags_first((chain.emissions > IS_FORBIDDEN) & chain.mask[:, :, None])
        least = _SMALLEST_SHARE * ops.maximum(totals[:-1, None], 1.0)  # not of less than 1: that may be below any float
        return ops.any(legal & (arrived > 0) & (arrived * weight <= least))

    spoilt = ~ops.all(totals > TINY) | _underflows(chain, vanishes)
    return log_z, ops.transpose(tags, (2, 0, 1))[:, :time], steps, spoilt


def _forward_backward_log(chain):
    """`forward_backward` of a centred chain in log space: slower, and exact for scores of any size."""
    emissions, linked = time_first(chain.emissions), time_first(chain.linked)[:, :, None]

    def forward(alpha, inputs):
        emission, link = inputs  # (batch, tags), (batch, 1)
        arrived = ops.logsumexp(alpha[:, :, None] + chain.transitions, axis=1)  # (batch, from, to) -> (batch, to)
        reached = ops.where(link, arrived, alpha) + emission  # (batch, tags)
        top = ops.max(reached, axis=-1, keepdims=True)  # (batch, 1)
        return reached - top, (alpha, top)

    first = chain.no_rows() + chain.start  # (batch, tags)
    last, (before, tops) = scan(forward, first, (emissions, linked))  # before: (time, batch, tags)
    last = last + chain.end  # (batch, tags)

    def backward(carry, inputs):
        (gamma, steps), (before, link) = carry, inputs  # (batch, tags), (batch, from, to), (batch, tags), (batch, 1)
        share = _softmax(before[:, :, None] + chain.transitions, 1) * gamma[:, None]  # (batch, from, to)
        steps = steps + ops.where(link[:, :, None], share, 0.0)  # (batch, from, to)
        return (ops.where(link, ops.sum(share, axis=2), gamma), steps), gamma

    (_, steps), tags = scan(backward, (_softmax(last, -1), chain.no_steps()), (before, linked), reverse=True)
    return ops.sum(tops, axis=(0, 2)) + ops.logsumexp(last, axis=-1), time_first(tags), steps


def onward_sums(chain):
    """The log of the sum of exp(score) over all tags after each position, given its tag; `(batch, time, tags)`.

    The beta of the forward-backward algorithm, in log space, up to a constant for each position.
    """
    emissions, mask, continues = (time_first(x) for x in (chain.emissions, chain.mask, chain.continues))

    def backward(ahead, inputs):
        emission, real, goes_on = inputs  # (batch, tags), (batch, 1), (batch, 1)
        sums = ops.logsumexp(chain.transitions + ahead[:, None], axis=2)  # (batch, from, to) -> (batch, from)
        sums = ops.where(goes_on, sums, chain.end)  # (batch, tags)
        reached = sums + emission
        reached = reached - ops.max(reached, axis=-1, keepdims=True)
        return ops.where(real, reached, ahead), sums

    inputs = (emissions, mask[:, :, None], continues[:, :, None])
    _, sums = scan(backward, chain.no_rows(), inputs, reverse=True)
    return time_first(sums)


def path_entropy(chain):
    """The entropy of the distribution over paths of a centred chain in nats, `(batch,)`.

    The sum of the entropies of each tag given the tag after it, by one forward recursion (Hernando et al. 2005,
    https://doi.org/10.1109/TIT.2005.850223). No term is negative, so nothing cancels: log Z minus the expected score
    is a small difference of large numbers where scores are large.
    """
    emissions, linked = time_first(chain.emissions), time_first(chain.linked)[:, :, None]

    def forward(carry, inputs):
        (alpha, entropy), (emission, link) = carry, inputs  # (batch, tags) thrice, (batch, 1)
        mean, arrived = _mean_surprise(alpha[:, :, None] + chain.transitions, entropy[:, :, None], 1)  # (batch, to)
        entropy = ops.where(link, mean, entropy)  # (batch, tags), of the tags before, given this one
        alpha = ops.where(link, arrived, alpha) + emission  # (batch, tags)
        return (alpha - ops.max(alpha, axis=-1, keepdims=True), entropy), alpha[:, 0]

    first = (chain.no_rows() + chain.start, chain.no_rows())
    (last, entropy), _ = scan(forward, first, (emissions, linked))
    total, _ = _mean_surprise(last + chain.end, entropy, -1)  # (batch,)
    return ops.where(chain.occupied, total, 0.0)


def _mean_surprise(scores, more, axis):
    """The mean of `more - log p` under p = softmax(scores) along an axis, and the logsumexp of the scores."""
    log_p, log_z = _log_softmax(scores, axis)
    mean = ops.sum(ops.exp(log_p) * (more + ops.minimum(-log_p, _LARGEST_SURPRISE)), axis=axis)
    return mean, ops.squeeze(log_z, axis=axis)


def _softmax(x, axis):
    """`ops.softmax` without its warning for an axis of length 1."""
    return ops.exp(_log_softmax(x, axis)[0])


def _log_softmax(x, axis):
    """The logarithms of the softmax, and the logsumexp with axes kept.

    The largest score is subtracted first: `x - logsumexp(x)` has three decimals where scores are 10,000.
    """
    top = ops.max(x, axis=axis, keepdims=True)
    rest = x - top
    total = ops.logsumexp(rest, axis=axis, keepdims=True)
    return rest - total, top + total


def _product(matrix):
    """The function `x -> matrix @ x` for `x (..., tags, batch)`, in the form that is fastest inside a loop."""
    if matrix.shape[0] > FEW_TAGS:
        return lambda columns: loop_ops.matmul(matrix, columns)
    return lambda columns: loop_ops.sum(matrix[:, :, None] * columns[..., None, :, :], axis=-2)


def _underflows(chain, vanishes):
    """Whether a path that matters may have underflowed to 0 in probability space; a scalar bool.

    If all transitions are within 30 nats of the best one, a tag whose probability underflows at one position cannot
    matter later, so the result is exact. If some transitions are forbidden, such a tag may be the only one that can
    go on: then no reachable tag may underflow, which `vanishes()` tests.
    """
    steep, forbidden = False, False
    for scores in (chain.transitions, chain.start, chain.end):
        legal = scores > IS_FORBIDDEN
        steep = steep | (ops.min(ops.where(legal, scores, 0.0)) < -_LARGEST_GAP)
        forbidden = forbidden | ops.any(~legal)
    return steep | ops.cond(forbidden, vanishes, lambda: steep)

"""log Z and the expected counts of a chain, by one recursion from the left and one from the right."""

from kcrf.backend import FEW_TAGS, loop_ops, ops, scan
from kcrf.crf.chain import FORBIDDEN, IS_FORBIDDEN, tags_first, time_first

__all__ = [
    "LONGEST",
    "TINY",
    "counts",
    "expected_score",
    "log_partition_of",
    "path_counts",
    "previous",
    "restrict",
    "with_gradient",
]

TINY = 1e-37  # the smallest normal float32 is 1.2e-38
_SMALLEST_SHARE = 1e-22  # of a reachable tag's probability; times the smallest transition it is still above TINY
_LARGEST_GAP = 30.0  # nats between transitions, exp(-30) = 1e-13
LONGEST = 2**20  # positions, where the length is not known before the graph runs


def path_counts(chain, tags):
    """What `counts` gives, of the one path `tags (batch, time)`: its score, its tags and its steps."""
    here = ops.cast(_known(chain, tags), "float32")
    before = ops.one_hot(previous(tags, chain.mask), chain.size)  # zeros where there is none
    steps = ops.matmul(ops.swapaxes(before, 1, 2), here)
    return expected_score(chain, here, steps), here, steps


def log_partition_of(chain):
    """log Z of a chain with the gradient of the expected counts, `(batch,)`."""
    return with_gradient(chain, counts(chain))


def with_gradient(chain, counts):
    """The value log Z with the gradient of the expected counts. The counts are constants, whatever made them."""
    log_z, tags, steps = (ops.stop_gradient(x) for x in counts)
    expected = expected_score(chain, tags, steps)
    return log_z + (expected - ops.stop_gradient(expected))


def expected_score(chain, tags, steps):
    """The score of `tags (batch, time, tags)` and `steps (batch, tags, tags)` taken so many times each; `(batch,)`."""
    emitted = ops.sum(tags * chain.emissions, axis=(1, 2))
    moved = ops.sum(steps * chain.transitions, axis=(1, 2))
    return emitted + moved + (_boundary_score(chain, tags) if chain.bounded else 0.0)


def _boundary_score(chain, weights):
    """`start` and `end`, weighed by `weights (batch, time, tags)` at the first and the last real position."""
    first = ops.sum(ops.where(chain.first[:, :, None], weights, 0.0), axis=1)  # (batch, tags)
    last = ops.sum(ops.where(chain.last[:, :, None], weights, 0.0), axis=1)
    return ops.sum(first * chain.start + last * chain.end, axis=1)


def restrict(chain, tags):
    """The emissions with every tag forbidden but the known one; (batch, time, tags)."""
    free = (tags < 0)[:, :, None] | ~chain.mask[:, :, None]
    return ops.where(_known(chain, tags) | free, chain.emissions, FORBIDDEN)


def _known(chain, tags):
    """Whether it is this tag that a real position is known to have; (batch, time, tags) bool."""
    return (tags[:, :, None] == ops.arange(chain.size, dtype="int32")) & chain.mask[:, :, None]


def _shift(x, by=1, fill=0):
    """`x (batch, time, ...)` moved to the right by `by` positions."""
    return ops.concatenate([ops.full_like(x[:, :by], fill), x[:, :-by]], axis=1)


def previous(tags, mask):
    """The tag at the real position before each position, -1 where there is none; (batch, time)."""
    found = _shift(ops.where(mask, tags, -1), fill=-1)
    reach = 1  # log(time) rounds: each doubles the stretch of masked positions that is crossed
    while reach < (tags.shape[1] or LONGEST):
        found = ops.where(found < 0, _shift(found, reach, fill=-1), found)
        reach *= 2
    return found


def counts(chain):
    """log Z `(batch,)`, expected tags `(batch, time, tags)`, expected steps `(batch, tags, tags)`. No gradient."""
    centred = chain.detached().centred()
    log_z, tags, steps, underflow = _counts_by_probabilities(centred)
    log_z, tags, steps = ops.cond(underflow, lambda: _counts_by_logarithms(centred), lambda: (log_z, tags, steps))
    log_z = ops.where(chain.occupied, log_z, 0.0)
    log_z = log_z if chain.offset is not None else log_z + centred.offset
    return log_z, ops.where(chain.mask[:, :, None], tags, 0.0), steps


def _counts_by_probabilities(chain):
    """log Z, tags and steps of `counts` for a centred chain, and whether an underflow may have spoilt them."""
    matrix, start, end = (ops.exp(x) for x in (chain.transitions, chain.start, chain.end))
    step, step_back = _product(ops.transpose(matrix)), _product(matrix)
    weight, linked = tags_first(ops.exp(chain.emissions)), time_first(chain.linked)[:, None]

    def filtered(state, inputs):
        weight, link = inputs
        total = loop_ops.sum(state, axis=0, keepdims=True)
        before = state / total  # after a total of 0 both are NaN, and `spoilt` is true
        arrived = loop_ops.where(link, step(before), before)
        return arrived * weight, (before, arrived, total)

    first = ops.transpose(chain.no_rows() + start)
    last, (before, arrived, totals) = scan(filtered, first, (weight, linked))  # (time, tags, batch)
    total = ops.sum(last, axis=0, keepdims=True)
    last = last / (total + TINY) * end[:, None]
    closing = ops.sum(last, axis=0, keepdims=True)
    totals = ops.concatenate([totals, total[None], closing[None]], axis=0)[:, 0]  # (time + 2, batch)
    onward = 1 / (arrived + TINY)

    def smoothed(tags, inputs):
        before, onward, link = inputs
        return loop_ops.where(link, before * step_back(tags * onward), tags), tags

    _, tags = scan(smoothed, last / ops.maximum(closing, TINY), (before, onward, linked), reverse=True)
    onward = ops.where(linked, tags * onward, 0.0)
    steps = matrix * ops.matmul(ops.transpose(before, (2, 1, 0)), ops.transpose(onward, (2, 0, 1)))
    log_z = ops.sum(ops.log(ops.maximum(totals, TINY)), axis=0)

    def vanishes():
        legal = tags_first((chain.emissions > IS_FORBIDDEN) & chain.mask[:, :, None])
        return ops.any(legal & (arrived > 0) & (arrived * weight <= _SMALLEST_SHARE * totals[1:-1, None]))

    spoilt = ops.any(totals <= TINY) | _underflows(chain, vanishes)
    return log_z, ops.transpose(tags, (2, 0, 1)), steps, spoilt


def _counts_by_logarithms(chain):
    """log Z, tags and steps of `counts` for a centred chain, whatever the size of its scores."""
    emissions, linked = time_first(chain.emissions), time_first(chain.linked)[:, :, None]

    def filtered(state, inputs):
        emission, link = inputs
        arrived = ops.where(link, ops.logsumexp(state[:, :, None] + chain.transitions, axis=1), state)
        reached = arrived + emission
        top = ops.max(reached, axis=-1, keepdims=True)
        return reached - top, (state, top)

    last, (before, tops) = scan(filtered, chain.no_rows() + chain.start, (emissions, linked))
    last = last + chain.end

    def smoothed(carry, inputs):
        (tags, steps), (before, link) = carry, inputs
        share = _softmax(before[:, :, None] + chain.transitions, 1) * tags[:, None]  # (batch, from, to)
        steps = steps + ops.where(link[:, :, None], share, 0.0)
        return (ops.where(link, ops.sum(share, axis=2), tags), steps), tags

    (_, steps), tags = scan(smoothed, (_softmax(last, -1), chain.no_steps()), (before, linked), reverse=True)
    return ops.sum(tops, axis=(0, 2)) + ops.logsumexp(last, axis=-1), time_first(tags), steps


def _softmax(x, axis):
    """As `ops.softmax`, which warns where there is one tag."""
    return ops.exp(x - ops.logsumexp(x, axis=axis, keepdims=True))


def _product(matrix):
    """The function `x -> matrix @ x` of columns `(tags, batch)`, as the step of a loop takes it fastest."""
    if matrix.shape[0] > FEW_TAGS:
        return lambda columns: loop_ops.matmul(matrix, columns)
    return lambda columns: loop_ops.sum(matrix[:, :, None] * columns, axis=1)


def _underflows(chain, vanishes):
    """Whether a path of a centred chain that counts may have become too small for a float.

    With every transition within 30 nats of the best one, what is too small beside its rivals at a step stays too
    small, whatever comes: probabilities are exact then. Where a step is forbidden, a tag of vanishing probability may
    be the only one that can go on, so there no tag that can be reached may vanish, which `vanishes()` tells.
    """
    steep, forbidden = False, False
    for scores in (chain.transitions, chain.start, chain.end):
        legal = scores > IS_FORBIDDEN
        steep = steep | (ops.min(ops.where(legal, scores, 0.0)) < -_LARGEST_GAP)
        forbidden = forbidden | ops.any(~legal)
    return steep | ops.cond(forbidden, vanishes, lambda: steep)

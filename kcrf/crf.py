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

from copy import copy

from kcrf.backend import FEW_TAGS, graph, loop_ops, ops, scan

__all__ = [
    "FORBIDDEN",
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

FORBIDDEN = -1e9  # finite, since -inf turns into NaN in gradients; beyond any sum of scores of a sentence
_IS_FORBIDDEN = FORBIDDEN / 2  # what was added to a forbidden score does not make it legal
_TINY = 1e-37  # the smallest normal float32 is 1.2e-38
_SMALLEST_SHARE = 1e-22  # of a reachable tag's probability; times the smallest transition it is still above _TINY
_LARGEST_GAP = 30.0  # nats between transitions, exp(-30) = 1e-13
_MANY_TAGS = 64  # from here on, a table (batch, tags, tags) leaves the processor's cache
_LONGEST = 2**20  # positions, where the length is not known before the graph runs


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
    return _path_counts(_Chain(emissions, mask, transitions, start, end), ops.cast(tags, "int32"))[0]


@graph
def log_partition(emissions, mask, transitions, start=None, end=None):
    """log Z, the logarithm of the summed exp(score) of all paths; 0 for a sentence without real positions.

    Its gradient is that of the expected counts, first order only. Returns `(batch,)`.

    >>> round(float(log_partition([[[0.0, 0.0], [0.0, 0.0]]], None, [[0.0, 0.0], [0.0, 0.0]])[0]), 4)  # log 4
    1.3863
    """
    return _log_partition(_Chain(emissions, mask, transitions, start, end))


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
    chain = _Chain(emissions, mask, transitions, start, end).centred()
    tags = ops.cast(tags, "int32")
    unknown = ops.any(chain.mask & (tags < 0))
    observed = ops.cond(
        unknown,
        lambda: _counts(chain.with_emissions(_restrict(chain, tags))),
        lambda: _path_counts(chain.detached(), tags),
    )
    return _with_gradient(chain, [o - e for o, e in zip(observed, _counts(chain), strict=True)])


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
    _, tags, steps = _counts(_Chain(emissions, mask, transitions, start, end))
    return tags, steps


@graph
def entropy(emissions, mask, transitions, start=None, end=None):
    """The entropy of the distribution over paths in nats, `(batch,)`: log Z minus the expected score. No gradient."""
    chain = _Chain(emissions, mask, transitions, start, end).centred().detached()
    log_z, tags, steps = _counts(chain)
    return ops.maximum(log_z - _expected_score(chain, tags, steps), 0.0)


@graph
def viterbi(emissions, mask, transitions, start=None, end=None):
    """The best path of each sentence: tags `(batch, time)` int32, -1 where masked. Ties go to the smaller tag.

    >>> ops.convert_to_numpy(viterbi([[[1.0, 0.0], [0.0, 0.9]]], None, [[1.0, 0.0], [0.0, 0.0]])).tolist()
    [[0, 0]]
    """
    return _best_path(_Chain(emissions, mask, transitions, start, end).detached())


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
    chain = _Chain(emissions, mask, transitions, start, end).detached()
    tags, exists = _best_paths(chain, k)
    flat = chain.repeat(k)
    scores = ops.reshape(_path_counts(flat, ops.reshape(tags, (-1, ops.shape(tags)[2])))[0], (-1, k))
    return ops.where(exists[:, :, None], tags, -1), ops.where(exists, scores, -float("inf"))


class _Chain:
    """The arguments of every function here in float32, masked emissions 0, and what the loops ask of the mask."""

    def __init__(self, emissions, mask, transitions, start, end):
        emissions = ops.convert_to_tensor(emissions)
        if len(emissions.shape) != 3:
            raise ValueError(f"`crf` needs emissions of shape (batch, time, tags). Received: shape={emissions.shape}")
        self.size = emissions.shape[-1]
        self.transitions = self._scores(transitions, "transitions", (self.size, self.size))
        self.bounded = start is not None or end is not None
        self.start = self._scores(start, "start", (self.size,))
        self.end = self._scores(end, "end", (self.size,))
        if mask is None:
            mask = ops.ones_like(emissions[:, :, 0], dtype="bool")
        self.mask = ops.cast(mask, "bool")
        if len(self.mask.shape) != 2:
            raise ValueError(f"`crf` needs a mask of shape (batch, time). Received: shape={self.mask.shape}")
        emissions = ops.maximum(ops.cast(emissions, "float32"), FORBIDDEN)
        self.emissions = ops.where(self.mask[:, :, None], emissions, 0.0)
        seen = ops.cumsum(ops.cast(self.mask, "int32"), axis=1)
        total = ops.sum(ops.cast(self.mask, "int32"), axis=1, keepdims=True)
        self.occupied = total[:, 0] > 0  # (batch,)
        self.first = self.mask & (seen == 1)  # (batch, time), as the others
        self.last = self.mask & (seen == total)
        self.linked = self.mask & (seen > 1)  # a step arrives here from the real position before
        self.continues = self.mask & (seen < total)  # a step leaves from here
        self.offset = None  # (batch,), once centred: what every path's score has lost

    def _scores(self, value, name, shape):
        if value is None:
            return ops.zeros(shape, dtype="float32")
        value = ops.cast(ops.convert_to_tensor(value), "float32")
        if tuple(value.shape) != shape:
            raise ValueError(f"`crf` needs `{name}` of shape {shape}. Received: shape={tuple(value.shape)}")
        return ops.maximum(value, FORBIDDEN)

    def replace(self, **fields):
        """The same chain with other fields."""
        other = copy(self)
        other.__dict__.update(fields)
        return other

    def detached(self):
        """The same chain, through which no gradient flows."""
        names = ("emissions", "transitions", "start", "end")
        return self.replace(**{name: ops.stop_gradient(getattr(self, name)) for name in names})

    def with_emissions(self, emissions):
        """The same chain with other emissions, 0 where masked."""
        return self.replace(emissions=emissions, offset=None)

    def centred(self):
        """The same distribution over paths with the best score everywhere 0, so that differences keep their digits."""
        if self.offset is not None:
            return self
        peaks = ops.stop_gradient(ops.max(self.emissions, axis=-1, keepdims=True))
        tops = {name: ops.stop_gradient(ops.max(getattr(self, name))) for name in ("transitions", "start", "end")}
        steps = ops.sum(ops.cast(self.linked, "float32"), axis=1)
        ends = ops.where(self.occupied, tops["start"] + tops["end"], 0.0)
        offset = ops.sum(peaks, axis=(1, 2)) + tops["transitions"] * steps + ends
        shifted = {name: getattr(self, name) - top for name, top in tops.items()}
        return self.replace(emissions=self.emissions - peaks, offset=offset, **shifted)

    def repeat(self, k):
        """Every sentence k times in a row."""
        names = ("emissions", "mask", "occupied", "first", "last", "linked", "continues")
        return self.replace(**{name: ops.repeat(getattr(self, name), k, axis=0) for name in names})

    def no_rows(self):
        """Zeros `(batch, tags)`."""
        return ops.zeros_like(ops.sum(self.emissions, axis=1))

    def no_steps(self):
        """Zeros `(batch, tags, tags)`."""
        return ops.zeros_like(self.no_rows()[:, :, None] + self.transitions)


def _path_counts(chain, tags):
    """What `_counts` gives, of the one path `tags (batch, time)`: its score, its tags and its steps."""
    here = ops.cast(_known(chain, tags), "float32")
    before = ops.one_hot(_previous(tags, chain.mask), chain.size)  # zeros where there is none
    steps = ops.matmul(ops.swapaxes(before, 1, 2), here)
    return _expected_score(chain, here, steps), here, steps


def _log_partition(chain):
    return _with_gradient(chain, _counts(chain))


def _with_gradient(chain, counts):
    """The value log Z with the gradient of the expected counts. The counts are constants, whatever made them."""
    log_z, tags, steps = (ops.stop_gradient(x) for x in counts)
    expected = _expected_score(chain, tags, steps)
    return log_z + (expected - ops.stop_gradient(expected))


def _expected_score(chain, tags, steps):
    emitted = ops.sum(tags * chain.emissions, axis=(1, 2))
    moved = ops.sum(steps * chain.transitions, axis=(1, 2))
    return emitted + moved + (_boundary_score(chain, tags) if chain.bounded else 0.0)


def _boundary_score(chain, weights):
    """`start` and `end`, weighed by `weights (batch, time, tags)` at the first and the last real position."""
    first = ops.sum(ops.where(chain.first[:, :, None], weights, 0.0), axis=1)  # (batch, tags)
    last = ops.sum(ops.where(chain.last[:, :, None], weights, 0.0), axis=1)
    return ops.sum(first * chain.start + last * chain.end, axis=1)


def _restrict(chain, tags):
    """The emissions with every tag forbidden but the known one; (batch, time, tags)."""
    free = (tags < 0)[:, :, None] | ~chain.mask[:, :, None]
    return ops.where(_known(chain, tags) | free, chain.emissions, FORBIDDEN)


def _known(chain, tags):
    """Whether it is this tag that a real position is known to have; (batch, time, tags) bool."""
    return (tags[:, :, None] == ops.arange(chain.size, dtype="int32")) & chain.mask[:, :, None]


def _shift(x, by=1, fill=0):
    """`x (batch, time, ...)` moved to the right by `by` positions."""
    return ops.concatenate([ops.full_like(x[:, :by], fill), x[:, :-by]], axis=1)


def _previous(tags, mask):
    """The tag at the real position before each position, -1 where there is none; (batch, time)."""
    found = _shift(ops.where(mask, tags, -1), fill=-1)
    reach = 1  # log(time) rounds: each doubles the stretch of masked positions that is crossed
    while reach < (tags.shape[1] or _LONGEST):
        found = ops.where(found < 0, _shift(found, reach, fill=-1), found)
        reach *= 2
    return found


def _counts(chain):
    """log Z `(batch,)`, expected tags `(batch, time, tags)`, expected steps `(batch, tags, tags)`. No gradient."""
    centred = chain.detached().centred()
    log_z, tags, steps, underflow = _counts_by_probabilities(centred)
    log_z, tags, steps = ops.cond(underflow, lambda: _counts_by_logarithms(centred), lambda: (log_z, tags, steps))
    log_z = ops.where(chain.occupied, log_z, 0.0)
    log_z = log_z if chain.offset is not None else log_z + centred.offset
    return log_z, ops.where(chain.mask[:, :, None], tags, 0.0), steps


def _counts_by_probabilities(chain):
    """log Z, tags and steps of `_counts` for a centred chain, and whether an underflow may have spoilt them."""
    matrix, start, end = (ops.exp(x) for x in (chain.transitions, chain.start, chain.end))
    step, step_back = _product(ops.transpose(matrix)), _product(matrix)
    weight, linked = _tags_first(ops.exp(chain.emissions)), _time_first(chain.linked)[:, None]

    def filtered(state, inputs):
        weight, link = inputs
        total = loop_ops.sum(state, axis=0, keepdims=True)
        before = state / total  # after a total of 0 both are NaN, and `spoilt` is true
        arrived = loop_ops.where(link, step(before), before)
        return arrived * weight, (before, arrived, total)

    first = ops.transpose(chain.no_rows() + start)
    last, (before, arrived, totals) = scan(filtered, first, (weight, linked))  # (time, tags, batch)
    total = ops.sum(last, axis=0, keepdims=True)
    last = last / (total + _TINY) * end[:, None]
    closing = ops.sum(last, axis=0, keepdims=True)
    totals = ops.concatenate([totals, total[None], closing[None]], axis=0)[:, 0]  # (time + 2, batch)
    onward = 1 / (arrived + _TINY)

    def smoothed(tags, inputs):
        before, onward, link = inputs
        return loop_ops.where(link, before * step_back(tags * onward), tags), tags

    _, tags = scan(smoothed, last / ops.maximum(closing, _TINY), (before, onward, linked), reverse=True)
    onward = ops.where(linked, tags * onward, 0.0)
    steps = matrix * ops.matmul(ops.transpose(before, (2, 1, 0)), ops.transpose(onward, (2, 0, 1)))
    log_z = ops.sum(ops.log(ops.maximum(totals, _TINY)), axis=0)

    def vanishes():
        legal = _tags_first((chain.emissions > _IS_FORBIDDEN) & chain.mask[:, :, None])
        return ops.any(legal & (arrived > 0) & (arrived * weight <= _SMALLEST_SHARE * totals[1:-1, None]))

    spoilt = ops.any(totals <= _TINY) | _underflows(chain, vanishes)
    return log_z, ops.transpose(tags, (2, 0, 1)), steps, spoilt


def _counts_by_logarithms(chain):
    """log Z, tags and steps of `_counts` for a centred chain, whatever the size of its scores."""
    emissions, linked = _time_first(chain.emissions), _time_first(chain.linked)[:, :, None]

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
    return ops.sum(tops, axis=(0, 2)) + ops.logsumexp(last, axis=-1), _time_first(tags), steps


def _softmax(x, axis):
    """As `ops.softmax`, which warns where there is one tag."""
    return ops.exp(x - ops.logsumexp(x, axis=axis, keepdims=True))


# The step of a recursion, a function of columns `(tags, batch)`: how it is computed fastest depends on their shape.


def _product(matrix):
    """The function `x -> matrix @ x` of columns `(tags, batch)`, as the step of a loop takes it fastest."""
    if matrix.shape[0] > FEW_TAGS:
        return lambda columns: loop_ops.matmul(matrix, columns)
    return lambda columns: loop_ops.sum(matrix[:, :, None] * columns, axis=1)


def _max_product(scores):
    """The function that gives the best `x[from] + scores[from, to]` of columns x, `(to, batch)`."""
    if scores.shape[0] > _MANY_TAGS:
        return lambda columns: ops.transpose(loop_ops.max(ops.transpose(columns)[:, :, None] + scores, axis=1))
    return lambda columns: loop_ops.max(columns[:, None] + scores[:, :, None], axis=0)


def _time_first(x):
    return ops.swapaxes(x, 0, 1)


def _tags_first(x):
    """`(batch, time, tags)` as `(time, tags, batch)`: of few tags and many sentences, processors like the last best."""
    return ops.transpose(x, (1, 2, 0))


def _underflows(chain, vanishes):
    """Whether a path of a centred chain that counts may have become too small for a float.

    With every transition within 30 nats of the best one, what is too small beside its rivals at a step stays too
    small, whatever comes: probabilities are exact then. Where a step is forbidden, a tag of vanishing probability may
    be the only one that can go on, so there no tag that can be reached may vanish, which `vanishes()` tells.
    """
    steep, forbidden = False, False
    for scores in (chain.transitions, chain.start, chain.end):
        legal = scores > _IS_FORBIDDEN
        steep = steep | (ops.min(ops.where(legal, scores, 0.0)) < -_LARGEST_GAP)
        forbidden = forbidden | ops.any(~legal)
    return steep | ops.cond(forbidden, vanishes, lambda: steep)


def _best_path(chain):
    """Tags of the best path `(batch, time)`, -1 where masked."""
    step = _max_product(chain.transitions)

    def forward(state, inputs):
        emission, link = inputs
        state = loop_ops.where(link, step(state), state) + emission
        return state - loop_ops.max(state, axis=0, keepdims=True), state

    emissions, linked = _tags_first(chain.emissions), _time_first(chain.linked)[:, None]
    last, history = scan(forward, ops.transpose(chain.no_rows() + chain.start), (emissions, linked))
    onward = ops.transpose(chain.transitions)

    def backward(tag, inputs):
        state, go_on = inputs
        best = loop_ops.argmax(state + loop_ops.take(onward, tag, axis=0), axis=-1)
        tag = loop_ops.where(go_on, best, tag)
        return tag, tag

    inputs = (ops.swapaxes(history, 1, 2), _time_first(chain.continues))
    _, tags = scan(backward, loop_ops.argmax(ops.transpose(last) + chain.end, axis=-1), inputs, reverse=True)
    return ops.where(chain.mask, ops.cast(_time_first(tags), "int32"), -1)


def _best_paths(chain, k):
    """Tags of the k best paths `(batch, k, time)`, -1 where masked, and whether each path exists `(batch, k)`."""
    history, values, tag, rank = _best_prefixes(chain, k)

    def step(carry, inputs):
        state, continues = inputs  # (batch, tags, k), (batch, 1)
        onward = ops.take(ops.transpose(chain.transitions), carry[0], axis=0)  # (batch, k, tags)
        _, picked = _best(_merge(state[:, None] + onward[..., None]), k)
        picked = ops.take_along_axis(picked, carry[1][..., None], axis=-1)[..., 0]
        here = (picked // k, picked % k)
        carry = tuple(ops.where(continues, new, old) for new, old in zip(here, carry, strict=True))
        return carry, carry

    inputs = (history, _time_first(chain.continues)[:, :, None])
    _, (tags, _) = scan(step, (tag, rank), inputs, reverse=True)
    tags = ops.where(chain.mask[:, None, :], ops.transpose(tags, (1, 2, 0)), -1)
    alone = ops.arange(k) == 0  # an empty sentence has one path
    return tags, (values > _IS_FORBIDDEN) & (chain.occupied[:, None] | alone) | alone


def _best_prefixes(chain, k):
    """The recursion of the k best prefixes per tag, and where the k best paths end.

    Returns:
        history: `(time, batch, tags, k)`, scores of the k best prefixes that end in each tag, up to a constant.
        values, tag, rank: `(batch, k)`, the scores of the k best paths, up to a constant, and their last state.
    """

    def step(state, inputs):
        emission, link = inputs  # (batch, tags), (batch, 1); the candidates are (batch, to, from * k)
        arrived = ops.where(link[:, :, None], _best(_merge(state[:, None] + moves[..., None]), k)[0], state)
        state = arrived + emission[:, :, None]
        state = state - ops.max(state, axis=(1, 2), keepdims=True)
        return state, state

    moves = ops.transpose(chain.transitions)
    state = (chain.no_rows() + chain.start)[:, :, None] + ops.where(ops.arange(k) == 0, 0.0, -float("inf"))
    inputs = (_time_first(chain.emissions), _time_first(chain.linked)[:, :, None])
    state, history = scan(step, state, inputs)
    values, picked = _best(_merge(state + chain.end[:, None]), k)
    return history, values - values[:, :1], picked // k, picked % k


def _merge(x):
    """`(..., tags, k)` as `(..., tags * k)`."""
    return ops.reshape(x, (-1, *x.shape[1:-2], x.shape[-2] * x.shape[-1]))


def _best(x, k):
    """Values and int32 indices of the k largest of the last axis."""
    if k == 1:
        return ops.max(x, axis=-1, keepdims=True), ops.cast(ops.argmax(x, axis=-1, keepdims=True), "int32")
    values, indices = ops.top_k(x, k)
    return values, ops.cast(indices, "int32")


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
    chain = _Chain(emissions, mask, transitions, start, end).centred()
    free = ops.cast(allowed, "bool") | ~chain.mask[:, :, None]
    within = chain.with_emissions(ops.where(free, chain.emissions, FORBIDDEN))
    return _log_partition(within) - _log_partition(chain)

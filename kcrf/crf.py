"""The linear-chain conditional random field as pure functions of tensors (Lafferty et al., 2001).

All take `emissions (batch, time, tags)`, `mask (batch, time)` bool with True = real (None: all are), `transitions
(tags, tags)` where `[i, j]` scores going from tag i to tag j, and optional `start (tags,)`, `end (tags,)`.

A masked position is not in the chain: its neighbours meet. So right padding, left padding and holes are one rule, and
every result equals that of the sentence with the masked positions cut out. A sentence without a real position has the
empty path alone: score 0, log Z 0. A forbidden tag or step has the score `FORBIDDEN`, or anything below it.

How it is computed. One loop over time carries the forward and the backward recursion, stacked. It works on normalised
probabilities, one matrix product a step, which is exact as long as nothing that matters is too small for a float; where
that cannot be excluded (`_underflows`), the same loop runs once more on logarithms. Nothing differentiates through the
loops: the gradient of log Z is the expected counts (the marginals), which both recursions give at once. So first
derivatives are right and second derivatives are not available.
"""

from copy import copy

from kcrf.backend import graph, ops, scan

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
    return _path_score(_Chain(emissions, mask, transitions, start, end), ops.cast(tags, "int32"))


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
    unknown = ops.any(chain.mask & (tags < 0), axis=1)  # (batch,)
    numerator = ops.where(unknown, _partial_score(chain, tags, ops.any(unknown)), _path_score(chain, tags))
    return numerator - _log_partition(chain)


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
    chain = _Chain(emissions, mask, transitions, start, end).detached()
    tags, _ = _best_paths(chain, 1)
    return tags[:, 0]


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
    scores = ops.reshape(_path_score(flat, ops.reshape(tags, (-1, ops.shape(tags)[2]))), (-1, k))
    return ops.where(exists[:, :, None], tags, -1), ops.where(exists, scores, -float("inf"))


class _Chain:
    """The arguments of every function here in float32, masked emissions 0, and what the loops ask of the mask."""

    def __init__(self, emissions, mask, transitions, start, end):
        emissions = ops.convert_to_tensor(emissions)
        if len(emissions.shape) != 3:
            raise ValueError(f"`crf` needs emissions of shape (batch, time, tags). Received: shape={emissions.shape}")
        self.size = emissions.shape[-1]
        self.transitions = self._scores(transitions, "transitions", (self.size, self.size))
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

    def centred(self):
        """The same distribution over paths with the best score everywhere 0, so that differences keep their digits."""
        peaks = ops.max(self.emissions, axis=-1, keepdims=True)
        tops = {name: ops.max(getattr(self, name)) for name in ("transitions", "start", "end")}
        shifted = {name: getattr(self, name) - ops.stop_gradient(top) for name, top in tops.items()}
        return self.replace(emissions=self.emissions - ops.stop_gradient(peaks), **shifted)

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


def _path_score(chain, tags):
    tags = ops.where(chain.mask, ops.maximum(tags, 0), 0)
    one_hot = ops.one_hot(tags, chain.size, dtype="float32")  # (batch, time, tags)
    emitted = ops.sum(one_hot * chain.emissions, axis=(1, 2))
    pairs = _previous(tags, chain.mask) * chain.size + tags  # (batch, time), meant where `linked`
    pairs = ops.where(chain.linked, pairs, 0)
    steps = ops.take(ops.reshape(chain.transitions, (-1,)), pairs)
    moved = ops.sum(ops.where(chain.linked, steps, 0.0), axis=1)
    return emitted + moved + _boundary_score(chain, one_hot)


def _log_partition(chain):
    return _with_gradient(chain, _counts(chain))


def _partial_score(chain, tags, needed):
    """log Z of the paths that agree with the tags that are known; `(batch,)`, computed only where `needed`."""

    def counts():
        return _counts(chain.replace(emissions=_restrict(chain, tags)))

    def nothing():
        return chain.no_rows()[:, 0], ops.zeros_like(chain.emissions), chain.no_steps()

    return _with_gradient(chain, ops.cond(needed, counts, nothing))


def _with_gradient(chain, counts):
    """The value log Z with the gradient of the expected counts. The counts are constants, whatever made them."""
    log_z, tags, steps = (ops.stop_gradient(x) for x in counts)
    expected = _expected_score(chain, tags, steps)
    return log_z + (expected - ops.stop_gradient(expected))


def _expected_score(chain, tags, steps):
    emitted = ops.sum(tags * chain.emissions, axis=(1, 2))
    moved = ops.sum(steps * chain.transitions, axis=(1, 2))
    return emitted + moved + _boundary_score(chain, tags)


def _boundary_score(chain, weights):
    """`start` and `end`, weighed by `weights (batch, time, tags)` at the first and the last real position."""
    first = ops.sum(ops.where(chain.first[:, :, None], weights, 0.0), axis=1)  # (batch, tags)
    last = ops.sum(ops.where(chain.last[:, :, None], weights, 0.0), axis=1)
    return ops.sum(first * chain.start + last * chain.end, axis=1)


def _restrict(chain, tags):
    """The emissions with every tag forbidden but the known one; (batch, time, tags)."""
    known = ops.one_hot(ops.maximum(tags, 0), chain.size, dtype="bool")
    return ops.where(known | (tags < 0)[:, :, None] | ~chain.mask[:, :, None], chain.emissions, FORBIDDEN)


def _shift(x, by=1, fill=0):
    """`x (batch, time, ...)` moved to the right by `by` positions."""
    padding = [[0, 0], [by, 0]] + [[0, 0]] * (len(x.shape) - 2)
    return ops.pad(x, padding, constant_values=fill)[:, : ops.shape(x)[1]]


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
    chain = chain.detached()
    log_z, tags, steps, underflow = _counts_by_probabilities(chain)
    log_z, tags, steps = ops.cond(underflow, lambda: _counts_by_logarithms(chain), lambda: (log_z, tags, steps))
    return ops.where(chain.occupied, log_z, 0.0), ops.where(chain.mask[:, :, None], tags, 0.0), steps


def _counts_by_probabilities(chain):
    """log Z, tags and steps of `_counts`, and whether an underflow may have spoilt them."""
    peaks = ops.max(chain.emissions, axis=-1, keepdims=True)
    tops = [ops.max(x) for x in (chain.transitions, chain.start, chain.end)]
    matrix, start, end = (
        ops.exp(x - top) for x, top in zip((chain.transitions, chain.start, chain.end), tops, strict=True)
    )
    both = ops.stack([matrix, ops.transpose(matrix)])  # (2, tags, tags)

    def step(state, inputs):
        weight, link = inputs
        arrived = ops.where(link, ops.matmul(state, both), state)
        state = arrived * weight
        return state / ops.maximum(ops.sum(state, axis=-1, keepdims=True), _TINY), arrived

    weight = ops.exp(chain.emissions - peaks)
    last, left, right = _run_both_ways(chain, step, weight, start, end)
    reached = left * weight
    sums = ops.sum(reached, axis=-1, keepdims=True)
    before = _shift(reached / ops.maximum(sums, _TINY))  # what each step left from, meant where `linked`
    after = weight * right
    norms = ops.sum(left * after, axis=-1, keepdims=True)
    norm = ops.maximum(norms, _TINY)
    leaving = ops.where(chain.linked[:, :, None], before / norm, 0.0)
    steps = matrix * ops.matmul(ops.transpose(leaving, (0, 2, 1)), after)
    closing = ops.sum(last * end, axis=-1)
    scales = ops.sum(ops.log(ops.maximum(sums, _TINY)) + peaks, axis=(1, 2))
    crossed = ops.sum(ops.cast(chain.linked, "float32"), axis=1)
    log_z = scales + ops.log(ops.maximum(closing, _TINY)) + tops[0] * crossed + tops[1] + tops[2]
    empty = ops.any(norms <= _TINY) | ops.any(closing <= _TINY)
    return log_z, left * after / norm, steps, empty | _underflows(chain, (left, right), weight)


def _counts_by_logarithms(chain):
    """log Z, tags and steps of `_counts`, whatever the size of the scores."""
    both = ops.stack([chain.transitions, ops.transpose(chain.transitions)])[:, None]  # (2, 1, tags, tags)

    def step(state, inputs):
        emission, link = inputs
        arrived = ops.where(link, ops.logsumexp(state[:, :, :, None] + both, axis=2), state)
        state = arrived + emission
        return state - ops.max(state, axis=-1, keepdims=True), arrived

    last, left, right = _run_both_ways(chain, step, chain.emissions, chain.start, chain.end)
    reached = left + chain.emissions
    tops = ops.max(reached, axis=-1, keepdims=True)
    after = chain.emissions + right
    steps = _steps_by_logarithms(chain, _shift(reached - tops), after)
    log_z = ops.sum(tops, axis=(1, 2)) + ops.logsumexp(last + chain.end, axis=-1)
    scores = left + after
    return log_z, ops.exp(scores - ops.logsumexp(scores, axis=-1, keepdims=True)), steps


def _steps_by_logarithms(chain, before, after):
    before, after, linked = (_time_first(x) for x in (before, after, chain.linked))

    def add(t, total):
        scores = before[t][:, :, None] + chain.transitions + after[t][:, None, :]  # (batch, tags, tags)
        scores = scores - ops.max(scores, axis=(1, 2), keepdims=True)
        weights = ops.exp(scores)
        share = weights / ops.sum(weights, axis=(1, 2), keepdims=True)
        return total + ops.where(linked[t][:, None, None], share, 0.0)

    return ops.fori_loop(0, ops.shape(before)[0], add, chain.no_steps())


def _time_first(x):
    return ops.swapaxes(x, 0, 1)


def _run_both_ways(chain, step, weights, start, end):
    """Runs `step` over time from the left and, stacked with it, from the right.

    `step(state, (weight, link))` gets the state `(2, batch, tags)`, weights `(2, batch, tags)` and the link
    `(2, batch, 1)`, whether a step arrives here; it returns the new state and what arrived.

    Returns:
        The last state from the left `(batch, tags)`, and what arrived from the left and from the right, each
        `(batch, time, tags)`.
    """

    def stacked(forward, backward):
        return ops.stack([_time_first(forward), ops.flip(_time_first(backward), axis=0)], axis=1)

    rows = chain.no_rows()
    links = stacked(chain.linked[:, :, None], chain.continues[:, :, None])
    state, arrived = scan(step, ops.stack([rows + start, rows + end]), (stacked(weights, weights), links))
    return state[0], _time_first(arrived[:, 0]), _time_first(ops.flip(arrived[:, 1], axis=0))


def _underflows(chain, messages, weight):
    """Whether a path that counts may have become too small for a float.

    With every transition within 30 nats of the best one, what is too small beside its rivals at a step stays too
    small, whatever comes: probabilities are exact then. Where a step is forbidden, a tag of vanishing probability may
    be the only one that can go on, so there no tag that can be reached may vanish.
    """
    steep, forbidden = False, False
    for scores in (chain.transitions, chain.start, chain.end):
        legal = scores > _IS_FORBIDDEN
        top = ops.max(scores)
        steep = steep | (top - ops.min(ops.where(legal, scores, top)) > _LARGEST_GAP)
        forbidden = forbidden | ops.any(~legal)
    legal = (chain.emissions > _IS_FORBIDDEN) & chain.mask[:, :, None]
    lost = False
    for arrived in messages:
        share = arrived * weight
        vanishes = share < _SMALLEST_SHARE * ops.sum(share, axis=-1, keepdims=True)
        lost = lost | ops.any(legal & (arrived > 0) & vanishes)
    return steep | (forbidden & lost)


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
        emission, link = inputs  # (batch, tags), (batch, 1)
        arrived = ops.where(link[:, :, None], _best_arrivals(state, chain.transitions, k), state)
        state = arrived + emission[:, :, None]
        state = state - ops.max(state, axis=(1, 2), keepdims=True)
        return state, state

    state = (chain.no_rows() + chain.start)[:, :, None] + ops.where(ops.arange(k) == 0, 0.0, -float("inf"))
    inputs = (_time_first(chain.emissions), _time_first(chain.linked)[:, :, None])
    state, history = scan(step, state, inputs)
    values, picked = _best(_merge(state + chain.end[:, None]), k)
    return history, values - values[:, :1], picked // k, picked % k


def _best_arrivals(state, transitions, k):
    """The k best scores with which each tag is reached from `state (batch, tags, k)`; the same shape."""
    if k == 1:  # the maximum over `from` with `to` innermost: several times faster, processors take `to` in strides
        return ops.max(state + transitions, axis=1)[:, :, None]  # of (batch, from, to)
    candidates = state[:, None] + ops.transpose(transitions)[:, :, None]  # (batch, to, from, k)
    return _best(_merge(candidates), k)[0]


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
    within = chain.replace(emissions=ops.where(free, chain.emissions, FORBIDDEN))
    return _log_partition(within) - _log_partition(chain)

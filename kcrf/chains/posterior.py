"""The posterior probabilities of spans, from one forward and one backward recursion per sentence. Needs NumPy only.

The tags y_s ... y_e of a span have the probability P(y_s) P(y_{s+1} | y_s) ... P(y_e | y_{e-1}), since the tags before
and after a position are independent given its tag. Each factor is at most 1: nothing cancels.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from kcrf.chains.recursions import IS_FORBIDDEN
from kcrf.tags import TagScheme

Spans = Sequence[Sequence[tuple[Any, ...]]]  # for each sentence; in positions, with a label if the scheme has types
_POSITIONS_AT_ONCE = 1 << 16  # of spans; each has a row of scores, one per tag
_LOWEST = -4e9  # below the sum of a few scores of what is forbidden, each -1e9


def span_probabilities(posterior: "Posterior", scheme: TagScheme, spans: Spans) -> list[np.ndarray]:
    """The posterior probability of each span; see `ConditionalRandomField.span_confidence`."""
    sentences, first, tags, excluded = _tags_of_spans(scheme, spans, posterior.mask)
    probabilities = np.zeros(len(sentences), "float32")
    if len(sentences):
        ends = np.cumsum([len(span_tags) for span_tags in tags])
        cuts = np.searchsorted(ends, np.arange(_POSITIONS_AT_ONCE, ends[-1], _POSITIONS_AT_ONCE))
        for part in np.split(np.arange(len(sentences)), np.unique(cuts[cuts > 0])):
            tags_of_part = [tags[i] for i in part]
            probabilities[part] = posterior.of_spans(sentences[part], first[part], tags_of_part, excluded[part])
    return np.split(probabilities, np.cumsum(list(map(len, spans)))[:-1])


def _tags_of_spans(
    scheme: TagScheme, spans: Spans, mask: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray], np.ndarray]:
    """For each span: sentence, number of its first real position, tags, and the tag that must not follow or -1."""
    sentences, first, tags, excluded = [], [], [], []
    for sentence, sentence_spans in enumerate(spans):
        real = [0, *np.cumsum(mask[sentence]).tolist()]  # before each position, how many real ones
        for span in map(tuple, sentence_spans):
            start, end, *label = span
            if len(label) != bool(scheme.types):
                raise ValueError(f"A {scheme.name} span has {2 + bool(scheme.types)} members. Received: {span}")
            if not 0 <= start < end < len(real) or real[start] == real[end]:
                needed = f"0 <= start < end <= {len(real) - 1} and a real position"
                raise ValueError(f"A span needs {needed}. Received: {span}")
            span_tags, follower = _pattern(scheme, real[end] - real[start], *label)
            sentences.append(sentence)
            first.append(real[start])
            tags.append(span_tags)
            excluded.append(follower)
    return np.array(sentences, int), np.array(first, int), tags, np.array(excluded, int)


@lru_cache(maxsize=4096)
def _pattern(scheme: TagScheme, length: int, *label: str) -> tuple[np.ndarray, int]:
    """The tags of a span, and the tag that would extend the span if it followed; -1 if the last tag marks the end."""
    tags, longer = (scheme.encode([(0, n, *label)], n) for n in (length, length + 1))
    if scheme.is_of_tokens:
        return np.array(tags), -1
    return np.array(tags), longer[length] if longer[:length] == tags else -1


class Posterior:
    """Posterior probabilities of tags in sentences, and of tags given the tag before.

    `marginals` and `onward` are `(batch, time, tags)`: the probability of every tag, and its emission score plus the
    logarithm of the sum over all continuations. `order` `(batch, time)` has the real positions of each sentence from
    left to right, then the masked positions, and `counts` `(batch,)` the number of real positions.
    """

    def __init__(self, marginals: np.ndarray, onward: np.ndarray, transitions: np.ndarray, mask: np.ndarray) -> None:
        self.marginals, self.mask = marginals, mask
        self._onward, self._transitions = onward, np.asarray(transitions, "float64")
        self.order = np.argsort(~mask, axis=1, kind="stable")
        self.counts = mask.sum(axis=1)

    def of_spans(
        self, sentences: np.ndarray, first: np.ndarray, tags: list[np.ndarray], excluded: np.ndarray
    ) -> np.ndarray:
        """The probabilities `(spans,)` of spans as `_tags_of_spans` returns them."""
        lengths = np.array([len(span_tags) for span_tags in tags])
        ends = np.cumsum(lengths)
        span = np.repeat(np.arange(len(sentences)), lengths)  # (positions of all spans,)
        offset = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
        flat = np.concatenate(tags)
        begin = self.marginals[sentences, self.order[sentences, first], flat[ends - lengths]]  # (spans,)

        after = np.flatnonzero(offset)  # positions after the first one of their span
        scores = self.log_conditionals(sentences[span[after]], first[span[after]] + offset[after], flat[after - 1])
        inside = np.zeros(len(sentences))
        np.add.at(inside, span[after], scores[np.arange(len(after)), flat[after]])

        cut = np.flatnonzero((excluded >= 0) & (first + lengths < self.counts[sentences]))
        scores = self.log_conditionals(sentences[cut], first[cut] + lengths[cut], flat[ends[cut] - 1])
        scores[np.arange(len(cut)), excluded[cut]] = -np.inf
        inside[cut] += _log_sum(scores)[:, 0]
        return np.minimum(begin * np.exp(inside), 1.0)

    def entropies(self) -> np.ndarray:
        """The entropy over tag sequences in nats, `(batch,)`: of the first tag, and of each given the one before."""
        sentences, tags = np.arange(len(self.mask)), np.arange(self.marginals.shape[2])
        totals = np.zeros(len(sentences))
        for number in range(int(self.counts.max(initial=0))):
            going = sentences[number < self.counts]
            if number == 0:
                totals[going] = entropies_of(self.marginals[going, self.order[going, 0]])
                continue
            before = self.marginals[going, self.order[going, number - 1]]  # (going, tags)
            scores = self.log_conditionals(going[:, None], np.full((1, 1), number), tags[None])  # (going, tags, tags)
            totals[going] += (before * entropies_of(np.exp(scores))).sum(axis=-1)
        return totals

    def log_conditionals(self, sentences: np.ndarray, numbers: np.ndarray, before: np.ndarray) -> np.ndarray:
        """The log probabilities `(positions, tags)` of all tags at the n-th real positions, given the previous tags."""
        scores = self._transitions[before] + self._onward[sentences, self.order[sentences, numbers]]
        return scores - _log_sum(scores)


def entropies_of(probabilities: np.ndarray) -> np.ndarray:
    """The entropies in nats of distributions over the last axis, float64."""
    probabilities = np.asarray(probabilities, "float64")
    logarithms = np.log(np.where(probabilities > 0, probabilities, 1.0))
    return np.maximum(-(probabilities * logarithms).sum(axis=-1), 0.0)


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """The softmax of an array."""
    x = np.exp(x - x.max(axis=axis, keepdims=True))
    return x / x.sum(axis=axis, keepdims=True)


def _log_sum(scores: np.ndarray) -> np.ndarray:
    """`logsumexp` over the last axis, which is kept."""
    top = scores.max(axis=-1, keepdims=True, initial=_LOWEST)
    return np.log(np.exp(scores - top).sum(axis=-1, keepdims=True)) + top


def roles_of(scheme: TagScheme) -> tuple[np.ndarray, np.ndarray]:
    """Which tags begin a span or are outside, and which tag would make a span longer, -1 if none, `(tags,)`."""
    begins, longer = np.zeros(len(scheme), bool), np.full(len(scheme), -1, "int32")
    if scheme.is_of_tokens:
        return ~begins, longer
    labels: list[tuple[str, ...]] = [(name,) for name in scheme.types]
    for label in labels or [()]:
        one, two, three = (scheme.encode([(0, length, *label)], length) for length in (1, 2, 3))
        begins[[one[0], two[0]]] = True
        for tags, longer_tags in ((one, two), (two, three)):
            if longer_tags[: len(tags)] == tags:
                longer[tags[-1]] = longer_tags[-1]
    begins[0] |= bool(scheme.types)  # outside
    return begins, longer


def best_sequences(posterior: Posterior, k: int, scheme: TagScheme | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The k most probable tag sequences `(batch, k, time)`, -1 where masked, and log probabilities, -inf if none.

    Given all scores, the tags are a Markov chain. These are its k best paths.
    """
    batch, time, size = posterior.marginals.shape
    starts, moves, ends = _forbidden(scheme, size)
    rows = np.arange(batch)
    with np.errstate(divide="ignore"):
        first = np.log(posterior.marginals[rows, posterior.order[:, 0]].astype("float64"))  # (batch, tags)
    values = np.full((batch, size, k), -np.inf)  # of the k best partial paths that end in each tag
    values[:, :, 0] = first + starts
    before = []  # back pointers of each position, (batch, tags, k) numbers below tags * k
    for number in range(1, time):
        steps = posterior.log_conditionals(rows[:, None], np.full((1, 1), number), np.arange(size)[None]) + moves
        scores = (values[:, :, :, None] + steps[:, :, None]).reshape(batch, size * k, size)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :k]  # (batch, k, tags)
        goes_on = (number < posterior.counts)[:, None, None]
        before.append(np.where(goes_on, best.swapaxes(1, 2), np.arange(size * k).reshape(size, k)))
        values = np.where(goes_on, np.take_along_axis(scores, best, axis=1).swapaxes(1, 2), values)
    values = (values + ends[:, None]).reshape(batch, size * k)
    at = np.argsort(-values, axis=1, kind="stable")[:, :k]
    values = np.take_along_axis(values, at, axis=1)
    return _follow(posterior, before, at, k), np.where(values > IS_FORBIDDEN, np.minimum(values, 0.0), -np.inf)


def _forbidden(scheme: TagScheme | None, size: int) -> tuple[np.ndarray, ...]:
    """Arrays to add to the scores of starts `(tags,)`, of transitions `(tags, tags)` and of ends: -inf if forbidden."""
    if scheme is None:
        return np.zeros(size), np.zeros((size, size)), np.zeros(size)
    allowed = (scheme.allowed_starts, scheme.allowed_transitions, scheme.allowed_ends)
    return tuple(np.where(may, 0.0, -np.inf) for may in allowed)


def _follow(posterior: Posterior, before: list[np.ndarray], at: np.ndarray, k: int) -> np.ndarray:
    """The tags `(batch, k, time)` of paths, from their ends `(batch, k)` to their beginnings."""
    paths = np.full((len(at), k, posterior.mask.shape[1]), -1)
    for number in range(posterior.mask.shape[1] - 1, -1, -1):
        real = np.flatnonzero(number < posterior.counts)
        paths[real, :, posterior.order[real, number]] = at[real] // k
        if number:
            at = np.take_along_axis(before[number - 1].reshape(len(at), -1), at, axis=1)
    return paths

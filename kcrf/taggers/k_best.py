"""The k best tag sequences of a text, combined from those of its windows. Needs NumPy only."""

from itertools import chain
from math import exp, inf, log

import numpy as np

_IMPOSSIBLE = -5e8  # a score below this contains a forbidden one


def best_of_window(window, paths, scores):
    """The best tag sequences for the units that a window keeps.

    Several paths may differ only in the context; the best of them is used.

    Args:
        window: A `kcrf.readers.Window`.
        paths: `(k, positions)` tags, best first.
        scores: `(k,)` log probabilities, -inf for paths that do not exist.

    Returns:
        A dict from the tags of the units, a tuple, to a log probability, best first.
    """
    best = {}
    for path, score in zip(paths, scores.tolist(), strict=True):
        if score > float("-inf"):
            best.setdefault(tuple(window.kept(path).tolist()), score)
    return best


def join_windows(windows, k):
    """The k best tag sequences of a text. Windows are assumed to be independent: their log probabilities are added.

    Args:
        windows: For each window of the text, a dict as `best_of_window` returns it.
        k: The number of sequences.

    Returns:
        A list of at most k `(tags, log probability)`, best first.
    """
    beams = [(0.0, None)]  # log probability, and the tags as a linked list from the last window to the first
    for ways in windows:
        longer = [(score + addend, (before, tags)) for score, before in beams for tags, addend in ways.items()]
        beams = sorted(longer, key=lambda beam: -beam[0])[:k]
    return [(_tags_of(link), score) for score, link in beams]


def join_parts(parts, analyses_of_parts, k):
    """The k best results of a text from those of its parts, which are independent of each other.

    Args:
        parts: List of strings.
        analyses_of_parts: For each part a list of `(spans, probability)`, best first; a span is `(start, end)` or
            `(start, end, class)`.
        k: How many.

    Returns:
        A list of at most k `(words, probability)`, best first. Words are strings, or `(word, class)`.
    """
    ways = [
        {_words_at(part, spans): log(p) if p else -inf for spans, p in analyses}
        for part, analyses in zip(parts, analyses_of_parts, strict=True)
    ]
    return [(words, exp(score)) for words, score in join_windows(ways, k)]


def _words_at(part, spans):
    """The words at spans `(start, end)`, a tuple; those with their classes at spans `(start, end, class)`."""
    return tuple((part[start:end], *label) if label else part[start:end] for start, end, *label in spans)


def _tags_of(link):
    """The tags of a linked list, in the order of the text."""
    parts = []
    while link is not None:
        link, tags = link
        parts.append(tags)
    return list(chain.from_iterable(reversed(parts)))


def best_sequences(posterior, k, scheme=None):
    """The k most probable tag sequences of sentences.

    Given all scores, the tags are a Markov chain, and the sequences are the k best paths of the chain.

    Args:
        posterior: A `kcrf.spans.Posterior`.
        k: The number of sequences.
        scheme: A `TagScheme` that the sequences must follow. Defaults to None: no constraints.

    Returns:
        Tags `(batch, k, time)`, -1 where masked, and log probabilities `(batch, k)`, -inf if there are fewer sequences.
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
    return _follow(posterior, before, at, k), np.where(values > _IMPOSSIBLE, np.minimum(values, 0.0), -np.inf)


def _forbidden(scheme, size):
    """Arrays to add to the scores of starts `(tags,)`, of transitions `(tags, tags)` and of ends: -inf if forbidden."""
    if scheme is None:
        return np.zeros(size), np.zeros((size, size)), np.zeros(size)
    allowed = (scheme.allowed_starts, scheme.allowed_transitions, scheme.allowed_ends)
    return tuple(np.where(may, 0.0, -np.inf) for may in allowed)


def _follow(posterior, before, at, k):
    """The tags `(batch, k, time)` of paths, from their ends `(batch, k)` to their beginnings."""
    paths = np.full((len(at), k, posterior.mask.shape[1]), -1)
    for number in range(posterior.mask.shape[1] - 1, -1, -1):
        real = np.flatnonzero(number < posterior.counts)
        paths[real, :, posterior.order[real, number]] = at[real] // k
        if number:
            at = np.take_along_axis(before[number - 1].reshape(len(at), -1), at, axis=1)
    return paths

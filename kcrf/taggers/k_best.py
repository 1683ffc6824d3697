"""The k best tag sequences of a text, combined from those of its windows. Needs NumPy only."""

from itertools import chain
from math import exp, inf, log


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

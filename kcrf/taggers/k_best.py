"""The k best tag sequences of a text, out of the best ones of its windows. Needs no Keras."""

from itertools import chain

__all__ = ["best_of_window", "join_windows"]


def best_of_window(window, paths, scores):
    """The best ways to tag the units that a window keeps.

    Several paths may differ in the context only; the first of them, the best one, counts.

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
    """The k best sequences of tags of a text. The windows are taken as independent: their log probabilities add up.

    Args:
        windows: For each window of the text, a dict as `best_of_window` returns it.
        k: How many.

    Returns:
        A list of at most k `(tags, log probability)`, best first.
    """
    beams = [(0.0, None)]  # log probability, and the tags as a linked list from the last window to the first
    for ways in windows:
        longer = [(score + more, (before, tags)) for score, before in beams for tags, more in ways.items()]
        beams = sorted(longer, key=lambda beam: -beam[0])[:k]
    return [(_tags_of(link), score) for score, link in beams]


def _tags_of(link):
    """The tags of a linked list, in the order of the text."""
    parts = []
    while link is not None:
        link, tags = link
        parts.append(tags)
    return list(chain.from_iterable(reversed(parts)))

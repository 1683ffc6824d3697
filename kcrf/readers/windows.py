"""Cuts texts of any length into windows that a model reads."""

import re

from kcrf.readers.padding import BUCKETS

__all__ = ["windows", "with_stops"]

_SENTENCE_ENDS, _PAUSES = frozenset("。！？；!?;…"), frozenset("，、：,:")
_FULL_STOP = re.compile(r"\.(?=\s)")


def windows(text, limit=BUCKETS[-1], overlap=16):
    """Cuts a text into windows of at most `limit` characters: at sentence ends, else at pauses, else overlapping.

    Args:
        text: A string, or a list of characters: of pieces, their last.
        limit: Characters of a window at most, more than twice `overlap`. Defaults to 128.
        overlap: Characters that windows share where there is no place to cut; what is tagged nearest to an end of a
            window then comes from its neighbour. Defaults to 16.

    Returns:
        A list of `(start, end, keep_start, keep_end)`: the window is `text[start:end]`, and of its tags those for
        `text[keep_start:keep_end]` count. The kept parts follow each other and cover the text.

    >>> windows("雨停了。天晴了。", limit=5, overlap=1)
    [(0, 4, 0, 4), (4, 8, 4, 8)]
    """
    text = with_stops(text) if isinstance(text, str) else text
    found, start, keep = [], 0, 0
    while len(text) - start > limit:
        cut = _last(text, start, start + limit, _SENTENCE_ENDS) or _last(text, start, start + limit, _PAUSES)
        end = cut or start + limit
        kept = cut or end - overlap // 2
        found.append((start, end, keep, kept))
        start, keep = cut or end - overlap, kept
    return [*found, (start, len(text), keep, len(text))] if text else []


def with_stops(text):
    """The text with 。 for each full stop before white space: for `windows` both end a sentence, a decimal point not.

    >>> with_stops("It is 1.5 km. Go.")
    'It is 1.5 km。 Go.'
    """
    return _FULL_STOP.sub("。", text)


def _last(text, start, end, marks):
    """The position after the last of `marks` in the second half of `text[start:end]`, or None."""
    return next((i + 1 for i in range(end - 1, (start + end) // 2, -1) if text[i] in marks), None)

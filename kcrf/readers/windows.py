"""Splits texts of any length into windows for a model."""

import re

from kcrf.readers.padding import BUCKETS

_SENTENCE_ENDS, _PAUSES = frozenset("。！？；!?;…"), frozenset("，、：,:")
_FULL_STOP = re.compile(r"\.(?=\s)")


def windows(text, limit=BUCKETS[-1], overlap=16):
    """Splits a text into windows of at most `limit` characters: at sentence ends, else at pauses, else with overlap.

    Args:
        text: A string, or a list of characters. For WordPieces, the last character of each piece.
        limit: The maximum number of characters of a window, more than twice `overlap`. Defaults to 128.
        overlap: The number of characters that two windows share if the text has neither a sentence end nor a pause.
            Each
            window decides the tags of the half that is farther from its edge. Defaults to 16.

    Returns:
        A list of `(start, end, keep_start, keep_end)`: the window is `text[start:end]`, and it decides the tags of
        `text[keep_start:keep_end]`. The kept parts are consecutive and cover the text.

    >>> windows("雨停了。天晴了。", limit=5, overlap=1)
    [(0, 4, 0, 4), (4, 8, 4, 8)]
    """
    text = with_stops(text) if isinstance(text, str) else text
    bounds, start, keep = [], 0, 0
    while len(text) - start > limit:
        end = start + limit
        cut = _cut_after(_SENTENCE_ENDS, text, start, end) or _cut_after(_PAUSES, text, start, end)
        end, next_start, next_keep = (cut, cut, cut) if cut else (end, end - overlap, end - overlap // 2)
        bounds.append((start, end, keep, next_keep))
        start, keep = next_start, next_keep
    return [*bounds, (start, len(text), keep, len(text))] if text else []


def with_stops(text):
    """Replaces each full stop before white space by 。, which is a sentence end for `windows`.

    A full stop without white space after it may be a decimal point.

    >>> with_stops("It is 1.5 km. Go.")
    'It is 1.5 km。 Go.'
    """
    return _FULL_STOP.sub("。", text)


def _cut_after(marks, text, start, end):
    """The position after the last of `marks` in the second half of `text[start:end]`, or None."""
    return next((i + 1 for i in range(end - 1, (start + end) // 2, -1) if text[i] in marks), None)

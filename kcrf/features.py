"""From text to numbers: windows of a text, a vocabulary of characters and pairs, padded batches. Needs NumPy only."""

import re
import unicodedata
from collections import Counter
from functools import cache
from itertools import pairwise

import numpy as np

__all__ = ["BUCKETS", "Vocabulary", "bucket", "pad", "windows", "with_stops"]

BUCKETS = (8, 16, 32, 64, 96, 128)  # the lengths batches come in, few, since each is compiled once
_SENTENCE_ENDS, _PAUSES = frozenset("。！？；!?;…"), frozenset("，、：,:")
_FULL_STOP = re.compile(r"\.(?=\s)")
_PAD, _UNKNOWN = 0, 1


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


@cache
def fold(character):
    """What the vocabulary sees of a character: compatibility forms and case folded, all digits 0.

    >>> fold("Ａ"), fold("７"), fold("国")
    ('a', '0', '国')
    """
    folded = unicodedata.normalize("NFKC", character).lower()
    folded = folded if len(folded) == 1 else character
    return "0" if folded.isdecimal() else folded


class Vocabulary:
    """The numbers of characters and of pairs of neighbours. 0 is padding, 1 whatever is not listed.

    Args:
        characters: List of folded characters.
        bigrams: List of pairs of them; a pair with nothing after it ends in a blank.

    >>> vocabulary = Vocabulary.of(["天天", "天大"], min_bigrams=1)
    >>> vocabulary.characters, vocabulary.bigrams
    (['天', '大'], ['天天', '天 ', '天大', '大 '])
    >>> vocabulary.encode("天大小")
    ([2, 3, 1], [4, 1, 1])
    """

    def __init__(self, characters, bigrams):
        self.characters, self.bigrams = list(characters), list(bigrams)
        self._characters = {c: i for i, c in enumerate(self.characters, 2)}
        self._bigrams = {b: i for i, b in enumerate(self.bigrams, 2)}

    @classmethod
    def of(cls, texts, min_characters=1, min_bigrams=2):
        """The vocabulary of some texts: what occurs often enough, in the order of frequency."""
        characters, bigrams = Counter(), Counter()
        for text in texts:
            folded = [fold(c) for c in text]
            characters.update(folded)
            bigrams.update(_pairs(folded))
        return cls(
            [c for c, n in characters.most_common() if n >= min_characters],
            [b for b, n in bigrams.most_common() if n >= min_bigrams],
        )

    @property
    def sizes(self):
        """How many numbers there are for characters and for bigrams."""
        return len(self.characters) + 2, len(self.bigrams) + 2

    def encode(self, text):
        """The numbers of its characters and of its bigrams, one of each per character of the text."""
        folded = [fold(c) for c in text]
        return (
            [self._characters.get(c, _UNKNOWN) for c in folded],
            [self._bigrams.get(b, _UNKNOWN) for b in _pairs(folded)],
        )


def _pairs(folded):
    return [a + b for a, b in pairwise([*folded, " "])]


def bucket(length):
    """The length to which a window of this length is padded."""
    return next(size for size in BUCKETS if length <= size)


def pad(rows, length, value=_PAD):
    """Rows of ints, or of vectors of ints, as one array `(rows, length, ...)`, filled up on the right."""
    array = np.full((len(rows), length, *np.shape(rows[0])[1:]), value, "int32")
    for target, row in zip(array, rows, strict=True):
        if len(row):
            target[: len(row)] = row
    return array

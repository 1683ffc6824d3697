"""The words that users add to a segmenter: as features of its lexicon, or forced wherever they occur."""

import re
import warnings
from collections.abc import Mapping

from kcrf.readers.lexicon import LENGTHS
from kcrf.taggers.span_constraints import matches, overlapping

__all__ = ["ForcedWords", "reader_with_words", "word_counts"]

_COUNT = 5  # of a word without a count: the largest count that the lexicon distinguishes


def word_counts(words):
    """A dict from words to counts, from strings or a mapping from strings to counts.

    Raises:
        TypeError: `words` is a string.
        ValueError: A word is empty or contains white space, or a count is not positive.

    >>> word_counts({"石墨烯": 20, "云计算": None})
    {'石墨烯': 20, '云计算': 5}
    """
    if isinstance(words, str):
        raise TypeError(f"`words` must be strings or a mapping from strings to counts. Received: {words!r}")
    counts = dict(words) if isinstance(words, Mapping) else dict.fromkeys(words)
    counts = {word: _COUNT if count is None else count for word, count in counts.items()}
    for word, count in counts.items():
        if not isinstance(word, str) or not re.fullmatch(r"\S+", word):
            raise ValueError(f"`words` must be strings without white space. Received: {word!r}")
        if not isinstance(count, int) or count < 1:
            raise ValueError(f"counts of `words` must be positive integers. Received: {word!r}: {count!r}")
    return counts


def reader_with_words(reader, counts, stacklevel):
    """The reader of a model with more words in its lexicon; warns of words that it cannot have.

    Args:
        reader: The reader.
        counts: A dict from words to counts.
        stacklevel: That of the warning.

    Raises:
        ValueError: The model has no lexicon.
    """
    if getattr(reader, "lexicon", None) is None:
        raise ValueError("`words` needs a model with a lexicon, or force_words=True. Received: a model without one")
    ignored = [word for word in counts if len(word) not in LENGTHS]
    if ignored:
        warnings.warn(
            f"{len(ignored)} of {len(counts)} `words` change nothing, such as {ignored[0]!r}: the model's lexicon "
            f"has words of {LENGTHS[0]} to {LENGTHS[-1]} characters. force_words=True takes words of any length",
            stacklevel=stacklevel,
        )
    return reader.with_words(counts)


class ForcedWords:
    """Words that are always segmented as words.

    Args:
        words: Iterable of strings.
        classes: A mapping from some of the words to their classes; the classes of the others are open. Defaults to
            none.
    """

    def __init__(self, words, classes=None):
        self._words, self._classes = set(words), dict(classes or {})
        self._lengths = sorted(set(map(len, self._words)), reverse=True)

    def __bool__(self):
        return bool(self._words)

    def spans(self, text, known):
        """`(start, end)`, or `(start, end, class)`, of the words in a text, and the known spans, from left to right.

        From left to right, the longest word at each position; a word that overlaps a known span is left out.
        """
        found = (span for span in matches(text, self._words, self._lengths) if not overlapping(known, *span))
        return sorted([*known, *((*span, *self._class_of(text[slice(*span)])) for span in found)])

    def _class_of(self, word):
        return [self._classes[word]] if word in self._classes else []

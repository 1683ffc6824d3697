"""The user dictionary of a segmenter: words with counts, which its lexicon features take into account."""

import re
import warnings
from collections.abc import Mapping

from kcrf.readers.lexicon import LENGTHS

__all__ = ["reader_with_words", "word_counts"]

_COUNT = 5  # of a word without a count: the lexicon does not distinguish larger counts


def word_counts(words):
    """The words of a user dictionary with their counts, a dict.

    Args:
        words: Iterable of strings, or a mapping from strings to counts. The count None means 5.

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
    """The reader of a model with more words in its lexicon. Warns about words that the lexicon cannot contain.

    Args:
        reader: The reader.
        counts: A dict from words to counts.
        stacklevel: The `stacklevel` of the warning.

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

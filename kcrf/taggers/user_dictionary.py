"""The user dictionary of a segmenter: words with their counts and their classes."""

import re
import warnings
from collections.abc import Mapping

from kcrf.readers.lexicon import LENGTHS

_COUNT = 5  # of a word without a count: the lexicon does not distinguish larger counts


def words_of_user(words):
    """The words of a user dictionary, a dict from words to `(count, class)`; the class is None if it is not given.

    Args:
        words: Iterable of strings, or a mapping from strings to counts, classes, `(count, class)` or None. A word
            without a count counts as 5.

    Raises:
        TypeError: `words` is a string.
        ValueError: A word is empty or contains white space, a count is not positive, or a class is empty.

    >>> words_of_user({"石墨烯": 20, "云计算": None, "南极洲": "ns", "北极": (3, "ns")})
    {'石墨烯': (20, None), '云计算': (5, None), '南极洲': (5, 'ns'), '北极': (3, 'ns')}
    """
    if isinstance(words, str):
        raise TypeError(f"`words` must be strings or a mapping from strings to counts. Received: {words!r}")
    values = dict(words) if isinstance(words, Mapping) else dict.fromkeys(words)
    checked = {}
    for word, value in values.items():
        count, label = value if isinstance(value, tuple | list) and len(value) == 2 else (value, None)
        if isinstance(count, str) and label is None:
            count, label = None, count
        count = _COUNT if count is None else count
        if not isinstance(word, str) or not re.fullmatch(r"\S+", word):
            raise ValueError(f"`words` must be strings without white space. Received: {word!r}")
        if not isinstance(count, int) or count < 1:
            raise ValueError(f"counts of `words` must be positive integers. Received: {word!r}: {count!r}")
        if label is not None and (not isinstance(label, str) or not label):
            raise ValueError(f"classes of `words` must be strings. Received: {word!r}: {label!r}")
        checked[word] = count, label
    return checked


def forced_words(words, classes, stacklevel):
    """The words that are always words, a dict to their class or None. Warns about classes that the model lacks.

    Args:
        words: As `words_of_user` returns them.
        classes: The classes of the model; empty if it has none: the classes of the words are then ignored.
        stacklevel: The `stacklevel` of the warning.
    """
    others = sorted({label for _, label in words.values() if label is not None} - {*classes})
    if others and classes:
        warnings.warn(
            f"`words` have {len(others)} classes that the model lacks, such as {others[0]!r}: the model predicts the "
            f"classes of these words. Its classes are {', '.join(classes)}",
            stacklevel=stacklevel,
        )
    return {word: label if label in classes else None for word, (_, label) in words.items()}


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
        raise ValueError("`words` needs a model with a lexicon, or `force_words=True`. Received: a model without one")
    ignored = [word for word in counts if len(word) not in LENGTHS]
    if ignored:
        warnings.warn(
            f"{len(ignored)} of {len(counts)} `words` change nothing, such as {ignored[0]!r}: the model's lexicon "
            f"has words of {LENGTHS[0]} to {LENGTHS[-1]} characters. `force_words=True` takes words of any length",
            stacklevel=stacklevel,
        )
    return reader.with_words(counts)

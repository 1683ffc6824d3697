"""Words as BMES tags, one for each character, and back. Needs NumPy only."""

from collections.abc import Iterable, Sequence

import numpy as np

SINGLE, BEGIN, MIDDLE, END = range(4)  # bert4keras' numbers: 0 = s, 1 = b, 2 = m, 3 = e


def words_to_tags(words: Iterable[str]) -> list[int]:
    """The BMES tags of a sentence given as a list of words.

    Raises:
        ValueError: `words` is a string, or a word is empty or no string.

    >>> words_to_tags(["我", "喜欢", "图书馆"])
    [0, 1, 3, 1, 2, 3]
    """
    if isinstance(words, str):
        raise ValueError(
            f"`words_to_tags` needs a list of words. Received: a string, {words[:40]!r}; use words.split()"
        )
    words = list(words)
    wrong = next((word for word in words if not isinstance(word, str) or not word), None)
    if wrong is not None:
        raise ValueError(f"`words_to_tags` needs words, none of them empty. Received: {wrong!r}")
    return [tag for word in words for tag in word_tags(len(word))]


def tags_to_words(text: str, tags: Sequence[int] | np.ndarray) -> list[str]:
    """Splits a text into words by the BMES tags of its characters. The words, joined, are always the text.

    Args:
        text: A string.
        tags: One int per character. Illegal sequences are split as `TagScheme.decode` does.

    >>> tags_to_words("我喜欢", [0, 1, 3])
    ['我', '喜欢']
    """
    if len(text) != len(tags):
        raise ValueError(f"Needs one tag per character. Received: {len(text)} characters, {len(tags)} tags")
    wrong = next((tag for tag in tags if isinstance(tag, str) or not -1 <= tag <= END), None)
    if wrong is not None:
        raise ValueError(f"Tags must be 0 = s, 1 = b, 2 = m, 3 = e. Received: {wrong!r}")
    starts = word_starts(tags)
    return [text[start:end] for start, end in zip(starts, starts[1:] + [len(text)], strict=False)]


def word_starts(tags: Sequence[int] | np.ndarray) -> list[int]:
    """The positions at which words begin, in a BMES sequence that may be illegal.

    >>> word_starts([3, 0, 2, 1, 3])
    [0, 1, 2, 3]
    """
    before = [SINGLE, *tags]
    return [
        position
        for position, (last, tag) in enumerate(zip(before, tags, strict=False))
        if tag == SINGLE or tag == BEGIN or last == SINGLE or last == END
    ]


def word_tags(length: int) -> list[int]:
    """The tags of a word of a length.

    >>> word_tags(4)
    [1, 2, 2, 3]
    """
    return [SINGLE] if length == 1 else ([BEGIN] + [MIDDLE] * (length - 2) + [END])[:length]

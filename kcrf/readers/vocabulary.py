"""The vocabulary of characters and bigrams."""

import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from typing import Self

UNKNOWN = 1


@cache
def fold(character: str) -> str:
    """Normalizes a character for the vocabulary: folds compatibility forms and case, and replaces digits by 0."""
    folded = unicodedata.normalize("NFKC", character).lower()
    folded = folded if len(folded) == 1 else character
    return "0" if folded.isdecimal() else folded


def fold_text(text: str) -> str:
    """Folds each character of a text. The length does not change."""
    return "".join(map(fold, text))


class Vocabulary:
    """Numbers characters and bigrams. 0 is padding, 1 is an unknown character or bigram.

    >>> vocabulary = Vocabulary.of(["天天", "天大"], min_bigrams=1)
    >>> vocabulary.characters, vocabulary.bigrams
    (['天', '大'], ['天天', '天 ', '天大', '大 '])
    >>> vocabulary.encode("天大小")
    ([2, 3, 1], [4, 1, 1])
    """

    def __init__(self, characters: Iterable[str], bigrams: Iterable[str]) -> None:
        self.characters, self.bigrams = self._lists = list(characters), list(bigrams)
        self._characters = {c: i for i, c in enumerate(self.characters, 2)}
        self._bigrams = {b: i for i, b in enumerate(self.bigrams, 2)}

    @classmethod
    def of(cls, texts: Iterable[str], min_characters: int = 1, min_bigrams: int = 2) -> Self:
        """The vocabulary of some texts: all characters and bigrams with a minimum count, most frequent first."""
        characters, bigrams = Counter[str](), Counter[str]()
        for text in texts:
            folded = [fold(c) for c in text]
            characters.update(folded)
            bigrams.update(_pairs(folded))
        return cls(
            [c for c, n in characters.most_common() if n >= min_characters],
            [b for b, n in bigrams.most_common() if n >= min_bigrams],
        )

    def grown(self, texts: Iterable[str], min_bigrams: int = 2) -> "Vocabulary":
        """Adds the characters and bigrams of `texts` that are new. Existing entries keep their numbers."""
        other = Vocabulary.of(texts, min_bigrams=min_bigrams)
        return Vocabulary(*joined(self._lists, other._lists))

    @property
    def sizes(self) -> tuple[int, int]:
        """The sizes of the vocabularies of characters and of bigrams."""
        return len(self.characters) + 2, len(self.bigrams) + 2

    def encode(self, text: str) -> tuple[list[int], list[int]]:
        """The numbers of the characters and of the bigrams of a text: two lists of the length of the text."""
        folded = [fold(c) for c in text]
        characters = [self._characters.get(c, UNKNOWN) for c in folded]
        return characters, [self._bigrams.get(b, UNKNOWN) for b in _pairs(folded)]


def joined(lists: Iterable[list[str]], others: Iterable[list[str]]) -> list[list[str]]:
    """Each list, followed by the entries of its other list that it lacks."""
    return [list(dict.fromkeys(a + b)) for a, b in zip(lists, others, strict=True)]


def _pairs(folded: list[str]) -> list[str]:
    """Each character with the next one; the last character with a space."""
    return [a + b for a, b in pairwise([*folded, " "])]

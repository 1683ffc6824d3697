"""Synonyms from a dictionary, or from the nearest neighbors among word vectors."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from os import PathLike

import numpy as np

from kcrf.corpora import read_lines
from kcrf.readers.vectors import read_vectors

_NEAREST, _LEAST_SIMILARITY = 10, 0.6  # number and cosine of the neighbors that count as synonyms


class Synonyms:
    """Words that can replace a word, from groups of synonyms. A word may be in several groups.

    >>> synonyms = Synonyms([["big", "large"], ["big", "grown-up"]])
    >>> synonyms.of("big"), synonyms.of("Large"), synonyms.of("small")
    (('large', 'grown-up'), ('Big',), ())
    """

    def __init__(self, groups: Iterable[Sequence[str]] = ()) -> None:
        self._others = {}
        for group in groups:
            for word in group:
                self._others.setdefault(word, {}).update(dict.fromkeys(other for other in group if other != word))
        self.longest = max(map(len, self._others), default=0)

    def __contains__(self, word: str) -> bool:
        return self._key(word) is not None

    def of(self, word: str) -> tuple[str, ...]:
        """The synonyms of a word, a tuple.

        If a capitalized word is not in the dictionary, it is looked up in lower case, and its synonyms are capitalized.
        """
        key = self._key(word)
        synonyms = () if key is None else self._find(key)
        return synonyms if key == word else tuple(other[:1].upper() + other[1:] for other in synonyms)

    def _key(self, word: str) -> str | None:
        """The form of the word that is listed: the word itself or its lower-case form; None if neither is listed."""
        return next((key for key in (word, word.lower()) if key in self._others), None)

    def _find(self, word: str) -> tuple[str, ...]:
        return tuple(self._others[word])


class _NearestNeighbors(Synonyms):
    """The nearest neighbors of each word, by the cosine of their vectors."""

    def __init__(self, words: list[str], vectors: np.ndarray) -> None:
        super().__init__()
        self._others = {word: number for number, word in enumerate(words)}
        self.longest = max(map(len, words), default=0)
        self._words = words
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        self._vectors = vectors / np.maximum(norms, np.finfo("float32").tiny)
        self._find = lru_cache(maxsize=1 << 16)(self._nearest)  # type: ignore[method-assign]

    def _nearest(self, word: str) -> tuple[str, ...]:
        index = self._others[word]
        similarities = self._vectors @ self._vectors[index]  # (words,)
        similarities[index] = -1.0
        best = np.argsort(-similarities, kind="stable")[:_NEAREST]
        return tuple(self._words[i] for i in best if similarities[i] >= _LEAST_SIMILARITY)


def read_synonyms(path: str | PathLike[str]) -> Synonyms:
    """Reads a dictionary of synonyms with one group of synonyms per line.

    If a line contains a tab, its words are separated by tabs and may contain spaces. In HIT's Cilin (同义词词林), lines
    begin with a code: lines whose code ends in = are groups of synonyms, other lines with a code are skipped.

    Raises:
        ValueError: No line has two words.
    """
    groups = []
    for line in read_lines(path):
        words = [word.strip() for word in (line.split("\t") if "\t" in line else line.split())]
        if words and words[0][-1:] in ("=", "#", "@") and words[0][:2].isalnum() and words[0].isascii():
            words = words[1:] if words[0].endswith("=") else []
        groups.append([word for word in words if word])
    if not any(len(group) > 1 for group in groups):
        raise ValueError(f"{path}: needs lines with two or more synonyms. Received: a file without such lines")
    return Synonyms(groups)


def read_synonym_vectors(path: str | PathLike[str], most: int = 200_000) -> Synonyms:
    """Reads word vectors: up to ten neighbors with a cosine of at least 0.6 are synonyms, antonyms among them."""
    return _NearestNeighbors(*read_vectors(path, max_words=most))

"""Synonyms: from a dictionary, or the nearest words by their vectors."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from os import PathLike

import numpy as np

from kcrf.corpora import read_lines
from kcrf.readers.vector_files import read_vectors

__all__ = ["Synonyms", "read_synonym_vectors", "read_synonyms"]

_NEAREST, _LEAST_SIMILARITY = 10, 0.6  # of the neighbours that count as synonyms


class Synonyms:
    """Words that may stand in place of a word.

    Args:
        groups: A list of groups of words that mean the same. A word may be in several groups.

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

    def __contains__(self, word):
        return self._key(word) is not None

    def of(self, word: str) -> tuple[str, ...]:
        """The synonyms of a word, a tuple.

        A capitalised word is also looked up in lower case; its synonyms are then capitalised.
        """
        key = self._key(word)
        synonyms = () if key is None else self._find(key)
        return synonyms if key == word else tuple(other[:1].upper() + other[1:] for other in synonyms)

    def _key(self, word):
        """The word, or its form in lower case, as it is listed; None if neither is."""
        return next((key for key in (word, word.lower()) if key in self._others), None)

    def _find(self, word):
        return tuple(self._others[word])


class _Neighbours(Synonyms):
    """The nearest words of each word, by the cosine of their vectors.

    Args:
        words: List of different words.
        vectors: `(words, features)`.
    """

    def __init__(self, words, vectors):
        super().__init__()
        self._others = {word: number for number, word in enumerate(words)}
        self.longest = max(map(len, words), default=0)
        self._words = words
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        self._vectors = vectors / np.maximum(norms, np.finfo("float32").tiny)
        self._find = lru_cache(maxsize=1 << 16)(self._nearest)

    def _nearest(self, word):
        index = self._others[word]
        similarities = self._vectors @ self._vectors[index]  # (words,)
        similarities[index] = -1.0
        best = np.argsort(-similarities, kind="stable")[:_NEAREST]
        return tuple(self._words[i] for i in best if similarities[i] >= _LEAST_SIMILARITY)


def read_synonyms(path: str | PathLike[str]) -> Synonyms:
    """Reads a dictionary of synonyms: one group of words that mean the same per line.

    The words are separated by tabs if the line has one, and may then hold blanks; else by blanks. Lines of HIT's
    Cilin (同义词词林) begin with a code: those whose code ends in = are groups of synonyms, the others are skipped.

    Args:
        path: A UTF-8 file.

    Returns:
        `Synonyms`.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: No line has two words.
    """
    groups = []
    for line in read_lines(path):
        words = [word.strip() for word in (line.split("\t") if "\t" in line else line.split())]
        if words and words[0][-1:] in ("=", "#", "@") and words[0][:2].isalnum() and words[0].isascii():
            words = words[1:] if words[0].endswith("=") else []
        groups.append([word for word in words if word])
    if not any(len(group) > 1 for group in groups):
        raise ValueError(f"{path}: needs lines of two synonyms or more. Received: a file without any")
    return Synonyms(groups)


def read_synonym_vectors(path: str | PathLike[str], most: int = 200_000) -> Synonyms:
    """Reads vectors of words; the nearest words of each count as its synonyms.

    Those are up to ten words whose cosine is at least 0.6. Such vectors put antonyms next to each other too, such as
    good and bad: a dictionary is better where there is one.

    Args:
        path: A file as word2vec, GloVe or fastText write it, the most frequent words first.
        most: How many words are read at most. Defaults to 200,000.

    Returns:
        `Synonyms`.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A line is not a word with as many numbers as the first one has. Names the line.
    """
    return _Neighbours(*read_vectors(path, most=most))

"""Pretrained word vectors as an input of a model: finds the words at each unit of a text. Needs NumPy only."""

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Self

import numpy as np

from kcrf.readers.vector_files import read_vectors
from kcrf.readers.word_tokens import token_spans

_LONGEST = 5  # units of a word, if units are characters
_TOKENS_FROM = 2.0  # minimum mean length of units, in characters, for units to be tokens
_MIDDLES = {3: 9, 4: 10, 5: 12}  # by the length of a word, the first place of a word around a unit


class WordVectors:
    """Word vectors, and the words around each unit of a text.

    If units are tokens, as in English, a unit has one place: itself. If units are characters, a unit has 15 places,
    after SoftLexicon (Ma et al. 2020, https://arxiv.org/abs/1908.05969): one for the character itself, four for the
    words of 2 to 5 characters that begin at the character, four for words that end at it, and six for words around it.
    A model computes the mean of each of these four groups. For a word between spaces, as in English, the first place of
    each character has the vector of the whole word; parts of the word are not looked up.

    A word is looked up as written, then in lower case.

    >>> vectors = WordVectors(["北京", "北京人"], np.ones((2, 4)))
    >>> [np.flatnonzero(row).tolist() for row in vectors.encode("北京人", [(0, 1), (1, 2), (2, 3)])]
    [[1, 2], [5, 9], [6]]
    """

    def __init__(self, words: Sequence[str], vectors: np.ndarray, longest: int = _LONGEST) -> None:
        self.words, self.longest = list(words), longest
        self.table = np.concatenate([np.zeros((1, vectors.shape[1])), vectors]).astype("float32")
        self.groups = [slice(0, 1), slice(1, 5), slice(5, 9), slice(9, 15)] if longest > 1 else [slice(0, 1)]
        self.places = self.groups[-1].stop
        self._rows = {word: row for row, word in enumerate(self.words, 1)}

    @classmethod
    def of_file(cls, path: str | PathLike[str], texts: Sequence[str], units: Sequence[Any], max_words: int) -> Self:
        """The vectors of the words in the training set, and of the first `max_words` words of the file.

        Units count as tokens if they have at least two characters on average.
        """
        lengths = [end - start for rows in units for start, end in np.asarray(rows).tolist()]
        longest = 1 if sum(lengths) >= _TOKENS_FROM * len(lengths) else _LONGEST
        strings = set[str]()
        for text, rows in zip(texts, units, strict=True):
            tokens = _long_tokens(text, longest)
            strings.update(text[start:end] for start, end in tokens)
            strings.update(string for *_, string in _strings(text, rows, longest, tokens))
        strings |= {string.lower() for string in strings}
        words, vectors = read_vectors(path, strings, max_words)
        if strings.isdisjoint(words):
            raise ValueError(f"{path}: needs words of the training text. Received: none, but {words[0]!r} and others")
        return cls(words, vectors, longest)

    def encode(self, text: str, units: Any) -> np.ndarray:
        """The rows of `table` for the words around each unit of a text, `(units, places)` int32, 0 for no word."""
        rows = np.zeros((len(units), self.places), "int32")
        starts, ends = np.array(units, int).reshape(-1, 2).T  # (units,) each
        tokens = _long_tokens(text, self.longest)
        for start, end in tokens:
            rows[(starts >= start) & (ends <= end), 0] = self._row(text[start:end])
        for first, length, string in _strings(text, units, self.longest, tokens):
            row = self._row(string)
            if not row:
                continue
            if length == 1:
                rows[first, 0] = row
                continue
            rows[first, length - 1] = row
            rows[first + length - 1, length + 3] = row
            for inside in range(length - 2):
                rows[first + 1 + inside, _MIDDLES[length] + inside] = row
        return rows

    def _row(self, string: str) -> int:
        """The row of a word, or 0 if it has no vector."""
        return self._rows.get(string) or self._rows.get(string.lower()) or 0

    def coverage(self, texts: Sequence[str], units: Sequence[Any]) -> float:
        """The fraction of the units of some texts that belong to a word with a vector."""
        has_vector = [self.encode(*pair).any(axis=1) for pair in zip(texts, units, strict=True)]
        return float(np.concatenate(has_vector).mean())

    def arrays(self) -> dict[str, np.ndarray]:
        """A dict of arrays, for a file, from which `from_arrays` creates the same object."""
        words = "\n".join(self.words).encode("utf-8", "surrogatepass")
        return {"words": np.frombuffer(words, np.uint8), "vectors": self.table[1:], "longest": np.array(self.longest)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        words = arrays["words"].tobytes().decode("utf-8", "surrogatepass").split("\n")
        if len(words) != len(arrays["vectors"]):
            raise ValueError(f"{len(arrays['vectors'])} vectors of {len(words)} words")
        return cls(words, arrays["vectors"], int(arrays["longest"]))


def _long_tokens(text: str, longest: int) -> list[tuple[int, int]]:
    """The start and end of words between spaces with at least two characters, if units are characters."""
    spans = token_spans(text).tolist() if longest > 1 else []
    return [(start, end) for start, end in spans if end - start > 1]


def _strings(text: str, units: Any, longest: int, tokens: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, str]]:
    """Yields `(number of the first unit, units, string)` of all runs of up to `longest` units without gaps.

    Runs that are a token of `_long_tokens`, or cut one, are omitted.
    """
    starts, ends = np.array(units, int).reshape(-1, 2).T  # (units,) each
    runs = np.cumsum(np.append(0, starts[1:] != ends[:-1])).tolist()  # (units,): the number of its run
    starts, ends = starts.tolist(), ends.tolist()
    known = set(tokens)
    inside = {place for start, end in known for place in range(start + 1, end)}
    for length in range(1, longest + 1):
        for first in range(len(starts) - length + 1):
            start, end = starts[first], ends[first + length - 1]
            if start in inside or end in inside or (start, end) in known:
                continue
            if length == 1 or runs[first] == runs[first + length - 1]:
                yield first, length, text[start:end]

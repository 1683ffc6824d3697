"""Word vectors as an input of a model, from files of word2vec, GloVe and fastText. Binary fastText needs gensim."""

import gzip
import os
import struct
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from os import PathLike
from typing import IO, Any, Self

import numpy as np

from kcrf.extras import needs_extra
from kcrf.readers.word_tokens import token_spans

Path = str | os.PathLike[str]
Vectors = Iterator[tuple[str, Callable[[], np.ndarray]]]  # words, and functions that read their numbers
_CHUNK = 1 << 20  # bytes of a binary file that are read at once
_MOST_NUMBERS, _LONGEST_LINE = 1 << 16, 1 << 22  # numbers of a vector, bytes of its line
_FASTTEXT = 793712314  # the first number of a binary file of fastText, an int32


def read_vectors(
    path: Path, wanted: Container[str] = frozenset(), max_words: int | None = None
) -> tuple[list[str], np.ndarray]:
    """Reads the vectors of the requested words and skips the other words."""
    vectors: dict[str, np.ndarray] = {}
    try:
        rows = islice(_vectors_in(path), None if wanted else max_words)
        for number, (word, vector) in enumerate(rows):
            if word not in vectors and (max_words is None or number < max_words or word in wanted):
                vectors[word] = vector()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path}: cannot be unpacked ({error})") from error
    if not vectors:
        raise ValueError(f"{path}: needs words with their vectors. Received: a file without any that is needed")
    return list(vectors), np.stack(list(vectors.values())).astype("float32", copy=False)


def _vectors_in(path: Path) -> Vectors:
    opened: Any = gzip.open if os.fspath(path).endswith(".gz") else open
    with opened(path, "rb") as file:
        first = _line(path, file, 1)
        if int.from_bytes(first[:4], "little") == _FASTTEXT:
            yield from _of_fasttext(path)
            return
        start = len(BOM_UTF8) if first.startswith(BOM_UTF8) else 0
        header = first[start:].split()
        if len(header) != 2 or not all(part.isdigit() for part in header):
            file.seek(start)
            yield from _of_text(path, file, None, None)
            return
        words, width = (int(part[:20]) for part in header)
        if width > _MOST_NUMBERS:
            raise ValueError(f"{path}:1: needs at most {_MOST_NUMBERS:,} numbers a word. Received: {width:,}")
        values = file.readline(_CHUNK).split()[1:]
        file.seek(len(first))
        is_text = values and sum(map(_is_number, values)) * 2 >= len(values)  # hardly any binary values are numbers
        read = _of_text if is_text else _of_binary
        yield from read(path, file, words, width)


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _of_text(path: Path, file: IO[bytes], words: int | None, width: int | None) -> Vectors:
    """Reads a word and its numbers per line. In GloVe's files, a few words contain spaces."""
    skipped = number = int(words is not None)
    while line := _line(path, file, number + 1):
        number += 1
        line = line.rstrip(b"\r\n ")
        word, *values = line.split(b" ") if width is None else line.rsplit(b" ", width)
        first, *inner_words = word.split(b" ")
        if width is None:
            width = len(values)
        is_word = word and b"\t" not in word and not any(map(_is_number, inner_words))
        if not is_word or not values or len(values) != width:
            raise _bad_line(path, number, line, width)
        yield word.decode("utf-8", "replace"), partial(_numbers, path, number, line, values)
    if words is not None and number - skipped < words:
        raise ValueError(f"{path}: needs {words} words, as its first line says. Received: {number - skipped}")


def _line(path: Path, file: IO[bytes], number: int) -> bytes:
    """The next line. A line that is longer than any vector is refused before it is read: it may have been packed."""
    line = file.readline(_LONGEST_LINE)
    if len(line) == _LONGEST_LINE:
        raise ValueError(f"{path}:{number}: needs lines of fewer than {_LONGEST_LINE:,} bytes")
    return line


def _numbers(path: Path, number: int, line: bytes, values: list[bytes]) -> np.ndarray:
    try:
        vector = np.array(values, "float32")
    except ValueError:
        vector = np.array(np.nan)
    if not np.isfinite(vector).all():
        raise _bad_line(path, number, line, len(values))
    return vector


def _bad_line(path: Path, number: int, line: bytes, width: int | None) -> ValueError:
    needed = f"{width} numbers" if width else "numbers"
    received = line.decode("utf-8", "replace")
    count = f", a word and {len(line.split()) - 1}" if len(received) > 60 else ""
    return ValueError(f"{path}:{number}: needs a word and {needed}. Received: {received[:60]!r}{count}")


def _of_binary(path: Path, file: IO[bytes], words: int, width: int) -> Vectors:
    """Reads words, each followed by a space, its numbers as little-endian float32, and optionally a line end."""
    size, buffer, start = 4 * width, b"", 0
    for number in range(1, words + 1):
        while (end := buffer.find(b" ", start)) < 0 or len(buffer) - end <= size:
            chunk = file.read(_CHUNK + size)
            if not chunk:
                raise ValueError(f"{path}: needs {words} words, as its first line says. Received: {number - 1}")
            buffer, start = buffer[start:] + chunk, 0
        word = buffer[start:end].lstrip(b"\n").decode("utf-8", "replace")
        start = end + 1 + size
        yield word, partial(_floats, path, number, word, buffer[end + 1 : start])


def _floats(path: Path, number: int, word: str, content: bytes) -> np.ndarray:
    vector = np.frombuffer(content, "<f4")
    if not np.isfinite(vector).all():
        raise ValueError(f"{path}: word {number}, {word[:60]!r}, needs finite numbers. Received: {vector}")
    return vector


def _of_fasttext(path: Path) -> Vectors:
    with needs_extra("vectors", f"{path}: a binary file of fastText, unlike a .vec file,"):
        from gensim.models.fasttext import load_facebook_vectors
    try:
        vectors = load_facebook_vectors(os.fspath(path))
    except (AssertionError, EOFError, NotImplementedError, struct.error, ValueError) as error:
        raise ValueError(f"{path}: needs a whole binary file of fastText. Received: {error}") from None
    for word in vectors.index_to_key:
        yield word, partial(vectors.get_vector, word)


_LONGEST = 5  # units of a word, if units are characters
_TOKENS_FROM = 2.0  # minimum mean length of units, in characters, for units to be tokens
_MIDDLES = {3: 9, 4: 10, 5: 12}  # by the length of a word, the first place of a word around a unit


class WordVectors:
    """Word vectors, and the words around each unit of a text.

    If units are tokens, as in English, a unit has one place: itself. If units are characters, a unit has 15 places,
    after SoftLexicon (Ma et al. 2020, https://arxiv.org/abs/1908.05969): one for the character itself, four for the
    words of 2 to 5 characters that begin at the character, four for words that end at it, and six for words around it.
    A model computes the mean of each of these four groups. For a word between spaces, as in English, the first place of
    each character has the vector of the whole word. A word is looked up as written, then in lower case.

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
    """Yields `(number of the first unit, units, string)` of all runs of up to `longest` units without gaps, except runs
    that are one of the tokens or cut one."""
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

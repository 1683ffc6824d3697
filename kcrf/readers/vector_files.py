"""Reads word vectors from files of word2vec, GloVe and fastText. Needs NumPy; binary fastText needs gensim."""

import gzip
import os
import struct
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Container, Iterator
from functools import partial
from itertools import islice
from typing import IO, Any

import numpy as np

from kcrf.extras import needs_extra

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
        read = _of_binary if _is_binary(file, len(first)) else _of_text
        yield from read(path, file, words, width)


def _is_binary(file: IO[bytes], start: int) -> bool:
    """Whether the bytes after the first line of a file are binary: hardly any of them can be read as numbers."""
    values = file.readline(_CHUNK).split()[1:]
    file.seek(start)
    return sum(_is_number(value) for value in values) * 2 < len(values) or not values


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

"""Readers of corpora, splits, and the small built-in corpus. Needs NumPy only."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

__all__ = ["Corpus", "load_mini", "read_lines", "read_segmented", "split"]

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Corpus:
    """The parts of a segmented corpus, each a list of sentences, a sentence being a list of words."""

    train: list
    valid: list
    test: list


def read_lines(path):
    """The lines of a UTF-8 file without their ends: `\\n` or `\\r\\n`. Nothing else ends a line; a BOM is dropped.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A line is not UTF-8; the message names the line and the byte.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    lines = path.read_bytes().removeprefix(_BOM).split(b"\n")
    if not lines[-1]:
        lines.pop()  # what follows the last line end is no line
    return list(decode_lines(lines, path))


def decode_lines(lines, name):
    """Yields lines of bytes as strings without their ends; `name` is what errors call the file."""
    for number, line in enumerate(lines, 1):
        try:
            yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name}:{number}: needs UTF-8 text. Received: byte 0x{line[error.start]:02x} at byte "
                f"{error.start + 1} of the line ({error.reason})"
            ) from None


def read_segmented(path):
    """Reads segmented text: one sentence a line, words separated by blanks, as SIGHAN and PKU have it.

    Args:
        path: A UTF-8 file.

    Returns:
        One list of words per line, an empty list for a blank line.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is not UTF-8, or has no word.
    """
    sentences = [line.split() for line in read_lines(path)]
    if not any(sentences):
        raise ValueError(
            f"{path}: needs at least one line of words separated by blanks. Received: a file without words"
        )
    return sentences


def split(sentences, fraction=0.1, seed=0):
    """Holds out a part of the sentences, drawn by the seed.

    Args:
        sentences: A list of at least two.
        fraction: How much to hold out, above 0 and below 1. Defaults to 0.1. Both parts get one sentence at least.
        seed: An int. Defaults to 0.

    Returns:
        The rest and the part held out, both in their old order.

    >>> split(["a", "b", "c", "d"], fraction=0.25, seed=3)
    (['a', 'b', 'c'], ['d'])
    """
    if not 0 < fraction < 1 or len(sentences) < 2:
        raise ValueError(
            "`split` needs two sentences or more and 0 < fraction < 1. "
            f"Received: {len(sentences)} sentences, fraction={fraction}"
        )
    count = min(max(1, round(fraction * len(sentences))), len(sentences) - 1)
    held_out = set(np.random.default_rng(seed).permutation(len(sentences))[:count].tolist())
    return (
        [sentence for i, sentence in enumerate(sentences) if i not in held_out],
        [sentence for i, sentence in enumerate(sentences) if i in held_out],
    )


def load_mini():
    """The built-in corpus: 1,311 Chinese sentences written for this project, segmented by the PKU conventions of 1998.

    >>> corpus = load_mini()
    >>> len(corpus.train), len(corpus.valid), len(corpus.test)
    (1053, 129, 129)
    """
    folder = Path(__file__).parent / "data"
    return Corpus(*(read_segmented(folder / f"mini_{part}.txt") for part in ("train", "valid", "test")))

"""Reads user dictionaries in the format of jieba."""

from os import PathLike

from kcrf.corpora.lines import read_lines

__all__ = ["read_word_list"]


def read_word_list(path: str | PathLike[str]) -> dict[str, int | None]:
    """Reads a user dictionary: a word per line, optionally followed by its count and its word class.

    They are separated by white space, as in jieba's user dictionaries. Word classes are ignored. Empty lines are
    skipped. If
    a word occurs twice, the last line is used.

    Args:
        path: A UTF-8 file.

    Returns:
        A dict from words to counts; the count of a word without one is None.

    Raises:
        FileNotFoundError: The file does not exist.
        ValueError: The file is not UTF-8 or has no word, or a line has more than three columns or the count 0.
    """
    counts = {}
    for number, line in enumerate(read_lines(path), 1):
        word, *columns = line.split() or [""]
        has_count = bool(columns) and columns[0].isdecimal()
        if len(columns) > 1 + has_count or has_count and int(columns[0]) < 1:
            raise ValueError(f"{path}:{number}: needs a word, its count and its word class at most. Received: {line!r}")
        if word:
            counts[word] = int(columns[0]) if has_count else None
    if not counts:
        raise ValueError(f"{path}: needs one word per line. Received: a file without words")
    return counts

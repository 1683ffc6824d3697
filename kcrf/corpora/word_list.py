"""Reads user dictionaries in the format of jieba."""

from os import PathLike

from kcrf.corpora.lines import read_lines


def read_word_list(path: str | PathLike[str]) -> dict[str, int | None]:
    """The words of a user dictionary with their counts, as `read_user_dictionary`; the count of others is None."""
    return {word: count for word, (count, _) in read_user_dictionary(path).items()}


def read_user_dictionary(path: str | PathLike[str]) -> dict[str, tuple[int | None, str | None]]:
    """Reads a user dictionary: a word per line, optionally followed by its count, its word class, or both.

    They are separated by white space, as in jieba's user dictionaries. Empty lines are skipped. If a word occurs twice,
    the last line is used.

    Args:
        path: A UTF-8 file.

    Returns:
        A dict from words to `(count, class)`; each is None if the line lacks it.

    Raises:
        FileNotFoundError: The file does not exist.
        ValueError: The file is not UTF-8 or has no word, or a line has more than three columns or the count 0.
    """
    words: dict[str, tuple[int | None, str | None]] = {}
    for number, line in enumerate(read_lines(path), 1):
        word, *columns = line.split() or [""]
        has_count = bool(columns) and columns[0].isdecimal()
        if len(columns) > 1 + has_count or has_count and int(columns[0]) < 1:
            raise ValueError(f"{path}:{number}: needs a word, its count and its word class at most. Received: {line!r}")
        if word:
            words[word] = int(columns[0]) if has_count else None, next(iter(columns[has_count:]), None)
    if not words:
        raise ValueError(f"{path}: needs one word per line. Received: a file without words")
    return words

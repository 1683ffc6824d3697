"""Lines of text files, read the same way everywhere."""

import re
from codecs import BOM_UTF8
from os import PathLike
from pathlib import Path

__all__ = ["BEGINS_ARRAY", "BEGINS_OBJECT", "decode_lines", "read_corpus_lines", "read_lines"]

BEGINS_OBJECT = re.compile(r'\s*\{\s*["}]')  # of JSON; a CoNLL file may begin with a brace as well
BEGINS_ARRAY = re.compile(r"\s*\[\s*(\{|$)")


def read_lines(path: str | PathLike[str]) -> list[str]:
    """Reads the lines of a UTF-8 file, without their ends.

    Lines end in `\\n` or `\\r\\n` and nothing else, so that U+2028 or a form feed stays inside its line. A byte order
    mark at the start is dropped.

    Raises:
        FileNotFoundError: There is no such file.
        IsADirectoryError: It is a folder.
        ValueError: A line is not UTF-8. Names the line and the byte.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path}: needs a file. Received: a folder")
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    lines = path.read_bytes().split(b"\n")
    if not lines[-1]:
        lines.pop()  # the file ended in a line end, and no line follows it
    return list(decode_lines(lines, path))


def decode_lines(lines, name):
    """Yields lines of bytes as strings, without line ends and byte order mark.

    Args:
        lines: An iterable of bytes.
        name: The name of the file in error messages.

    Raises:
        ValueError: A line is not UTF-8.
    """
    for number, line in enumerate(lines, 1):
        line = line.removeprefix(BOM_UTF8) if number == 1 else line
        try:
            yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name}:{number}: needs UTF-8 text. Received: byte 0x{line[error.start]:02x} at byte "
                f"{error.start + 1} of the line ({error.reason})"
            ) from None


def read_corpus_lines(path, lines=None):
    """Reads the lines of a corpus, and refuses a `\\r` within a line.

    Files of old Macintoshes end their lines in `\\r` alone: all their sentences would be read as one.

    Args:
        path: The file.
        lines: Its lines, where they were read before. Defaults to `None`.
    """
    lines = [line.rstrip("\r") for line in (read_lines(path) if lines is None else lines)]
    for number, line in enumerate(lines, 1):
        if "\r" in line:
            raise ValueError(f"{path}:{number}: needs lines that end in \\n or \\r\\n. Received: a \\r inside the line")
    return lines

"""Lines of text files, read the same way everywhere."""

import re
from codecs import BOM_UTF8
from os import PathLike
from pathlib import Path

from kcrf.corpora.encodings import check_is_text, encoding_hint

BEGINS_OBJECT = re.compile(r'\s*\{\s*["}]')  # of JSON; a CoNLL file may begin with a brace as well
BEGINS_ARRAY = re.compile(r"\s*\[\s*(\{|$)")
_URL = re.compile(r"(?:^|/)([a-z][a-z0-9+]+:/+[^/].*)")


def read_lines(path: str | PathLike[str]) -> list[str]:
    """Reads the lines of a UTF-8 file, without their ends.

    Lines end in `\\n` or `\\r\\n` and nothing else, so that U+2028 or a form feed stays inside its line. A byte order
    mark at the start of a line is dropped: files that were concatenated have one in the middle.

    Raises:
        FileNotFoundError: There is no such file.
        IsADirectoryError: It is a folder.
        ValueError: A line is not UTF-8. Names the line, the byte and, if one fits, the encoding.
    """
    check_is_file(path)
    lines = Path(path).read_bytes().split(b"\n")
    if not lines[-1]:
        lines.pop()  # the file ended in a line end, and no line follows it
    return list(decode_lines(lines, path))


def check_is_file(path):
    """Refuses a path where there is no file to read.

    Raises:
        FileNotFoundError: There is nothing, or the path is a URL.
        IsADirectoryError: It is a folder.
    """
    if Path(path).is_dir():
        raise IsADirectoryError(f"{path}: needs a file. Received: a folder")
    if not Path(path).exists():
        if url := _URL.search(str(path)):
            raise FileNotFoundError(f"{url[1]}: needs a file on this machine. Received: a URL; download it first")
        raise FileNotFoundError(f"{path}: no such file")


def decode_lines(lines, name):
    """Yields lines of bytes as strings, without line ends and byte order marks.

    Args:
        lines: An iterable of bytes.
        name: The name of the file in error messages.

    Raises:
        ValueError: A line is not UTF-8, or the file is a packed one.
    """
    for number, line in enumerate(lines, 1):
        if number == 1:
            check_is_text(name, line)
        try:
            yield line.removeprefix(BOM_UTF8).removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name}:{number}: needs UTF-8 text. Received: byte 0x{line[error.start]:02x} at byte "
                f"{error.start + 1} of the line ({error.reason}){encoding_hint(name, line)}"
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

"""Lines of text files, read the same way everywhere. Says what a file is that is not UTF-8 text."""

import codecs
import re
import shlex
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from kcrf.extras import needs_extra
from kcrf.files import json_line

# Chinese, Japanese, Thai, Lao, Burmese, Khmer: the inside of a set of characters in a regular expression.
WITHOUT_SPACES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u3000\u3003-\u3007\u3021-\u30ff\u3105-\u312f\u31f0-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff"
)
CJK = re.compile(  # Chinese and Japanese, their punctuation and full-width forms
    "[\u2e80-\u30ff\u3105-\u312f\u31f0-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]"
)

BEGINS_OBJECT = re.compile(r'\s*\{\s*["}]')  # of JSON; a CoNLL file may begin with a brace as well
BEGINS_ARRAY = re.compile(r"\s*\[\s*(\{|$)")
TEXT_NAMES = (  # what a column of texts is called
    *("text", "text_a", "sentence1", "premise", "question1", "review", "question", "sentence"),
    *("content", "comment", "message", "tweet"),
)
_SEPARATOR = re.compile("[\t,;]")  # of columns
_URL = re.compile(r"(?:^|/)([a-z][a-z0-9+]+:/+[^/].*)")
_PACKED = {  # what it is, the command that unpacks a file, and a stream
    b"\x1f\x8b": ("a gzip file", "gunzip -k", "gunzip"),
    b"PK\x03\x04": ("a zip file", "unzip", "funzip"),
    b"BZh91AY&SY": ("a bzip2 file", "bunzip2 -k", "bunzip2"),
    b"\xfd7zXZ": ("an xz file", "unxz -k", "unxz"),
    b"(\xb5/\xfd": ("a zstd file", "unzstd", "unzstd"),
}
_WIDE = {codecs.BOM_UTF32_LE: "UTF-32", codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}
_NULS = {"UTF-16LE": re.compile(rb"(?:[^\x00]\x00){4}"), "UTF-16BE": re.compile(rb"(?:\x00[^\x00]){4}")}
# What nearly all characters of a text in the encoding are: its more frequent half, and its punctuation.
_USUAL = {
    "GB18030": re.compile(rb"[\xb0-\xd7\xa1-\xa3][\xa1-\xfe]"),
    "Big5": re.compile(rb"[\xa4-\xc6\xa1-\xa3][\x40-\x7e\xa1-\xfe]"),
    "Shift_JIS": re.compile(rb"[\x81-\x83\x88-\x97][\x40-\x7e\x80-\xfc]"),
}
_CHARACTER = re.compile(rb"[\x81-\xfe][\x40-\xfe]|[\x80-\xff]")
_USUAL_CHARACTER = re.compile("[\\t\\r\\x20-\\x7e\u3000-\u30ff\u4e00-\u9fff\uff00-\uff65]")
_LEAST = 0.8  # fraction of the characters that must be usual ones
FilePath = str | PathLike[str]


def read_lines(path: FilePath) -> list[str]:
    """Reads the lines of a UTF-8 file, without their ends.

    Lines end in `\\n` or `\\r\\n` and nothing else, so that U+2028 or a form feed stays inside its line. A byte order
    mark at the start of a line is dropped: files that were concatenated have one in the middle.
    """
    check_is_file(path)
    if Path(path).suffix == ".spacy":
        return _lines_of_docbin(path)
    lines = Path(path).read_bytes().split(b"\n")
    if not lines[-1]:
        lines.pop()  # the file ended in a line end, and no line follows it
    return list(decode_lines(lines, path))


def _lines_of_docbin(path: FilePath) -> list[str]:
    """The documents of a DocBin of spaCy as JSON lines: tokens with their tags, or a text with its label."""
    with needs_extra("spacy", f"{path}: a DocBin"):
        from spacy.tokens import DocBin
        from spacy.vocab import Vocab
    try:
        docs = list(DocBin().from_disk(path).get_docs(Vocab()))
    except Exception as error:  # errors of zlib, msgpack and spaCy
        raise ValueError(f"{path}: needs a DocBin of spaCy. Received: {type(error).__name__} {error}") from None
    lines = []
    for doc in docs:
        item: dict[str, Any] = {"tokens": [token.text for token in doc]}
        if doc.has_annotation("ENT_IOB"):
            item["ner_tags"] = [f"{t.ent_iob_}-{t.ent_type_}" if t.ent_type_ else t.ent_iob_ or "?" for t in doc]
        if doc.has_annotation("TAG") or doc.has_annotation("POS"):
            item["pos_tags"] = [token.tag_ or token.pos_ or "?" for token in doc]
        if doc.cats:
            item = {"text": doc.text, "label": [name for name, value in doc.cats.items() if value > 0.5]}
        lines.append(json_line(item))
    return lines


def refuse_records(where: object, line: str, needed: str = "a text") -> None:
    """Raises ValueError if a line of texts is JSON, or names of columns: words, among them a usual one."""
    names = {name.strip('"').lower() for name in _SEPARATOR.split(line)}
    if BEGINS_OBJECT.match(line) and line.rstrip().endswith("}"):
        received = "a JSON object; `jq -r .text` takes out the texts"
    elif BEGINS_ARRAY.match(line):
        received = "a JSON array; `jq -r '.[].text'` takes out the texts"
    elif len(names) > 1 and all(map(str.isidentifier, names - {""})) and not names.isdisjoint(TEXT_NAMES):
        received = f"the names of columns, {line[:60]!r}; take out the texts"
    else:
        return
    raise ValueError(f"{where}: needs {needed}. Received: {received}")


def check_is_file(path: FilePath) -> None:
    """Refuses a path where there is no file to read."""
    if Path(path).is_dir():
        raise IsADirectoryError(f"{path}: needs a file. Received: a folder")
    if not Path(path).exists():
        if url := _URL.search(str(path)):
            raise FileNotFoundError(f"{url[1]}: needs a file on this machine. Received: a URL; download it first")
        raise FileNotFoundError(f"{path}: no such file")


def decode_lines(lines: Iterable[bytes], name: object) -> Iterator[str]:
    """Yields lines of bytes as strings, without line ends and byte order marks."""
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


def read_corpus_lines(path: FilePath, lines: Iterable[str] | None = None) -> list[str]:
    """Reads the lines of a corpus. Refuses `\\r` alone as a line end, as old Macintoshes have it."""
    lines = [line.rstrip("\r") for line in (read_lines(path) if lines is None else lines)]
    for number, line in enumerate(lines, 1):
        if "\r" in line:
            raise ValueError(f"{path}:{number}: needs lines that end in \\n or \\r\\n. Received: a \\r inside the line")
    return lines


def check_is_text(name: object, begin: bytes) -> None:
    """Refuses a packed file, and UTF-16 or UTF-32, by its first bytes."""
    for magic, (kind, command, stream_command) in _PACKED.items():
        if begin.startswith(magic):
            raise ValueError(
                f"{name}: needs UTF-8 text. Received: {kind}; {_advice(name, command, stream_command)} unpacks it"
            )
    wide = next((encoding for mark, encoding in _WIDE.items() if begin.startswith(mark)), None)
    wide = wide or next((encoding for encoding, nuls in _NULS.items() if nuls.match(begin)), None)
    if wide is not None:
        raise ValueError(f"{name}: needs UTF-8 text. Received: {wide}; {_conversion(name, wide)}")


def encoding_hint(name: object, line: bytes) -> str:
    """The command that converts a file to UTF-8, for the end of a message; "" if no encoding fits the line."""
    if b"\x00" in line:
        wide = _wide_encoding(line.removesuffix(b"\n"))
        return f"; it looks like {wide}: {_conversion(name, wide)}" if wide else ""
    usual = {encoding: _usual(encoding, line) for encoding in _USUAL}
    best = max(usual, key=lambda encoding: usual[encoding])
    if usual[best] < _LEAST:
        best = "WINDOWS-1252" if _is_western(line) else ""
    return f"; it looks like {best}: {_conversion(name, best)}" if best else ""


def _wide_encoding(line: bytes) -> str | None:
    """UTF-16LE or UTF-16BE, in which nearly all characters of a line are usual ones; None if neither fits."""
    for encoding, units in (("UTF-16LE", line[len(line) % 2 :]), ("UTF-16BE", line[: len(line) // 2 * 2])):
        text = units.decode(encoding, "replace")
        if len(text) > 1 and len(_USUAL_CHARACTER.findall(text)) >= _LEAST * len(text):
            return encoding
    return None


def _conversion(name: object, encoding: str) -> str:
    command = f"iconv -f {encoding} -t UTF-8"
    return f"{_advice(name, command, command, ' > NEW_FILE')} converts it"


def _advice(name: object, command: str, stream_command: str, target: str = "") -> str:
    """The command to type for a file, or the part of a pipe for the standard input."""
    if name == "<stdin>":
        return f"`| {stream_command}` before this command"
    return f"`{command} {shlex.quote(str(name))}{target}`"


def _usual(encoding: str, line: bytes) -> float:
    """The fraction of the characters of a line that are usual in an encoding; 0 if the line cannot be decoded."""
    try:
        line.decode(encoding)
    except UnicodeDecodeError:
        return 0
    characters = [part for part in _CHARACTER.findall(line) if part[0] > 0x7F]
    return sum(_USUAL[encoding].fullmatch(part) is not None for part in characters) / max(1, len(characters))


def _is_western(line: bytes) -> bool:
    """Whether the bytes above ASCII are letters among ASCII letters."""
    try:
        text = line.decode("cp1252")
    except UnicodeDecodeError:
        return False
    high = [character for character in text if not character.isascii()]
    return len(high) <= len(text) / 2 and all(character.isalpha() or character in "‘’“”–…€£" for character in high)

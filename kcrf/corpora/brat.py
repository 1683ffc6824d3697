"""Reads brat's standoff files: entities in `x.ann`, their text in `x.txt`."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kcrf.corpora.lines import FilePath, read_lines
from kcrf.corpora.offsets import check_offsets

_OTHER = re.compile(r"(?:[REAMN][0-9]+|[*#][0-9]*)\t")  # a relation, an event, an attribute, a note
_BEGIN = re.compile(rf"T[0-9]+\t|{_OTHER.pattern}")
_ENTITY = re.compile(r"T[0-9]+\t(\S+) ([0-9]+ [0-9]+(?:;[0-9]+ [0-9]+)*)\t(.*)")


def is_standoff(path: FilePath, lines: Sequence[str]) -> bool:
    """Whether the lines of a file are annotations of brat. An empty `.ann` file annotates a text without entities."""
    return Path(path).suffix == ".ann" and all(map(_BEGIN.match, [line for line in lines if line.strip()][:1]))


def read_standoff(path: FilePath, lines: Sequence[str]) -> list[tuple[int, str, list[Any]]]:
    """`(line number, text, spans)` for each line of the text in `x.txt`. Relations, events, and notes are not read."""
    text_path = Path(path).with_suffix(".txt")
    if not text_path.exists():
        raise FileNotFoundError(f"{path}: needs its text in {text_path}. Received: no such file")
    read_lines(text_path)  # names the line that is not UTF-8
    text = text_path.read_bytes().decode("utf-8-sig")  # offsets count the ends of lines, too
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip() and not _OTHER.match(line)]
    entities = [(number, _entity(path, number, line, text)) for number, line in numbered]
    check_offsets(path, [(number, text, [entity]) for number, entity in entities])
    return list(_rows(text, sorted(entity[:3] for _, entity in entities)))


def _entity(path: object, number: int, line: str, text: str) -> tuple[int, int, str, str | None]:
    """The span `(start, end, label, text or None)` of an entity; parts with white space between them are one part."""
    match = _ENTITY.fullmatch(line)
    if not match:
        raise ValueError(f"{path}:{number}: needs an annotation of brat, `T1<tab>PER 0 2<tab>text`. Received: {line!r}")
    places = list(map(int, re.findall("[0-9]+", match[2])))
    gaps = [text[start:end] for start, end in zip(places[1::2], places[2::2])]
    if sorted(places) != places or places[-1] > len(text) or "".join(gaps).strip():
        raise ValueError(
            f"{path}:{number}: needs an entity in one part, within the {len(text)} characters of its text. "
            f"Received: {line[:80]!r}"
        )
    return places[0], places[-1], match[1], None if gaps else match[3]


def _rows(text: str, spans: Sequence[tuple[int, int, str]]) -> Iterator[tuple[int, str, list[Any]]]:
    """Yields `(line number, text, spans)` for each line that is not blank; lines that an entity joins are one."""
    inside = {place for start, end, _ in spans for place in range(start, end)}
    breaks = [match.span() for match in re.finditer(r"\r?\n|\Z", text) if match.start() not in inside]
    begins = [0, *(begin for _, begin in breaks[:-1])]
    within = [[] for _ in begins]
    for start, end, label in spans:
        line = bisect_right(begins, start) - 1
        within[line].append((start - begins[line], end - begins[line], label))
    number = 1
    for before, begin, (end, _), spans_of_line in zip([0, *begins], begins, breaks, within):
        number += text.count("\n", before, begin)
        if text[begin:end].strip():
            yield number, text[begin:end], spans_of_line

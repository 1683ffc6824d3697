"""Reads texts with entities, and writes them as JSON lines, the format of `kcrf tag`.

{"text": "李雷在上海", "entities": [{"start": 0, "end": 2, "label": "PER"}, ...]}. The member "unknown", a list of
[start, end], marks text with unknown labels; true means all text outside of the entities.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from kcrf.corpora.brat import is_standoff
from kcrf.corpora.conll import check_types, read_conll, sentences_of_tags
from kcrf.corpora.formats import Annotated, Tagged
from kcrf.corpora.lines import read_lines
from kcrf.corpora.offsets import Row, fitting_units, trimmed
from kcrf.corpora.recognize import read_items
from kcrf.corpora.sentences import Sentence, outside_spans
from kcrf.files import json_line
from kcrf.progress_bars import print_note

_MOST_OVERLAPS = 0.001  # overlaps per entity that are read without `repair`, as odd tags are in CoNLL columns


def entity_line(text: str, entities: list[dict[str, Any]], **members: Any) -> str:
    """The JSON line, without its end, for a text and its entities, a list of dicts."""
    return json_line({"text": text, "entities": entities, **members})


def sentence_line(sentence: Sentence) -> str:
    """The JSON line, without its end, for a `Sentence` with entities."""
    entities = [{"start": start, "end": end, "label": label} for start, end, label in sentence.spans]
    unknown = {"unknown": [list(part) for part in sentence.unknown]} if sentence.unknown else {}
    return entity_line(sentence.text, entities, **unknown)


def read_entities(path: str | PathLike[str], column: int = -1, repair: bool = False) -> list[Sentence]:
    """Reads sentences from JSON, from the formats of annotation tools and public corpora, or from CoNLL columns.

    The format is recognized; docs/entities.md lists the formats. White space at the edges of entities is removed, and
    texts of an export that are not labeled are skipped; a note on standard error counts both.

    Args:
        path: A UTF-8 file, or a folder with `.ann` files of brat. Each line of their texts is a sentence.
        column: As for `kcrf.corpora.read_conll`.
        repair: Whether to repair files. For CoNLL, see `kcrf.corpora.read_conll`. For JSON, the longer of two
            overlapping entities is kept, or the first of two with the same length, and a note on standard error counts
            the others. Defaults to False: files with fewer than one overlap in a thousand entities are read the same
            way, and other overlaps are errors.

    Returns:
        A list of `Sentence`s.

    Raises:
        FileNotFoundError: The file does not exist.
        ValueError: The file has another format; an entity is not in the text, or its text differs from the text at its
            offsets; two entities overlap and `repair` is False; or as for `read_conll`. Names the line.
    """
    files = sorted(Path(path).glob("*.ann")) if Path(path).is_dir() else []
    if files:
        return [sentence for file in files for sentence in read_entities(file, column, repair)]
    lines = read_lines(path)
    items = read_items(path, lines, "ner")
    if items is None:
        return read_conll(path, column, repair, lines)
    path = Path(path).with_suffix(".txt") if is_standoff(path, lines) else path  # which has the lines
    if items and isinstance(items[0], Tagged):
        return sentences_of_tags(path, [_rows(path, *item) for item in items if isinstance(item, Tagged)], repair)
    texts = [item for item in items if isinstance(item, Annotated)]
    if any(text.labels for text in texts) and not any(text.spans for text in texts):
        raise ValueError(f"{path}: needs labels of spans. Received: labels of texts, which --task classify reads")
    if first_lines := {span[2]: text.number for text in texts[::-1] for span in text.spans}:
        check_types(path, first_lines)
    rows = trimmed(path, [(text.number, text.text, [span[:3] for span in text.spans]) for text in texts])
    rows = _apart(path, rows, repair)
    return [_sentence(path, *row, text) for row, text in zip(rows, texts, strict=True)]


def _rows(path: object, number: int, tokens: list[str], tags: list[str | None]) -> list[tuple[int, str, str]]:
    if len(tokens) != len(tags) or not all(tokens):
        received = f"{tokens} with the tags {tags}"
        raise ValueError(f"{path}:{number}: needs a tag for each token, none of them empty. Received: {received}")
    return [(number, token, tag or "?") for token, tag in zip(tokens, tags, strict=True)]


def _apart(path: object, rows: list[Row], repair: bool) -> list[Row]:
    """The rows without entities that overlap others. Refuses such entities unless they are few or `repair` is true."""
    overlaps = [(n, *pair) for n, text, spans in rows if _are_within(text, spans) for pair in _overlaps(spans)]
    if not overlaps:
        return rows
    number, first, second = overlaps[0]
    count = sum(len(spans) for *_, spans in rows)
    if not repair and len(overlaps) >= _MOST_OVERLAPS * count:
        raise ValueError(
            f"{path}:{number}: entities must not overlap; `repair=True` keeps the longer of two, or the "
            f"first. Received: {second} over {first}, the first of {len(overlaps)} overlaps"
        )
    rows = [(n, text, _without_overlaps(spans) if _are_within(text, spans) else spans) for n, text, spans in rows]
    dropped = count - sum(len(spans) for *_, spans in rows)
    print_note(
        f"{path}: {dropped:,} of {count:,} entities overlap a longer entity, or an earlier one of the same length, and "
        f"are omitted; the first one is in line {number}"
    )
    return rows


def _are_within(text: str, spans: Iterable[Any]) -> bool:
    """Whether all spans are in a text. Those of a text that has others are refused later, with their offsets."""
    return all(0 <= span[0] < span[1] <= len(text) for span in spans)


def _overlaps(spans: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Yields each span that begins before the end of an earlier one, after that one."""
    furthest: Any = spans[0] if spans else None
    for span in spans[1:]:
        if span[0] < furthest[1]:
            yield furthest, span
        furthest = max(furthest, span, key=lambda item: item[1])


def _without_overlaps(spans: Iterable[Any]) -> list[Any]:
    """The spans without those that overlap a longer one, or one of the same length before them."""
    kept: list[Any] = []  # in order, apart
    for span in sorted(spans, key=lambda span: (span[0] - span[1], span[0])):
        place = bisect_left(kept, span[0], key=lambda other: other[0])
        is_after = place == 0 or kept[place - 1][1] <= span[0]
        if is_after and (place == len(kept) or span[1] <= kept[place][0]):
            kept.insert(place, span)
    return kept


def _sentence(path: object, number: int, text: str, spans: list[Any], item: Annotated) -> Sentence:
    try:
        return Sentence(text, spans, list(item.tokens), outside_spans(spans, item.unknown))
    except ValueError as error:
        units = [] if max((end for _, end, _ in spans), default=0) <= len(text) else fitting_units([(text, spans)])
        hint = f"; they are within it in {' or '.join(units)}" if units else ""
        raise ValueError(f"{path}:{number}: {error}{hint}") from None

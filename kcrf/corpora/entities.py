"""Reads texts with entities, and writes them as JSON lines, the format of `kcrf tag`.

One object per line: {"text": "李雷在上海", "entities": [{"start": 0, "end": 2, "label": "PER"}, ...]}. Offsets count
characters. Entities may have more members: their text, which must be the text at their offsets, or a confidence. The
member "unknown", a list of [start, end], marks text with unknown labels; true means all text outside of the entities.
Exports of annotation tools are read, too; see `annotation_tools`. So are the public corpora CLUENER and CMeEE.
"""

from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from kcrf.corpora.annotation_tools import read_export, tool_of
from kcrf.corpora.brat import is_standoff, read_standoff
from kcrf.corpora.conll import read_conll
from kcrf.corpora.json_objects import begins_json, json_objects
from kcrf.corpora.lines import FilePath, read_lines
from kcrf.corpora.offsets import Row, check_offsets, fitting_units, misplaced, trimmed
from kcrf.corpora.sentences import Sentence, outside_spans
from kcrf.files import json_line
from kcrf.progress_bars import print_note

_FORMS = {
    "CLUENER": '{"text": ..., "label": {label: {entity: [[start, end], ...]}}}',
    "CMeEE": '{"text": ..., "entities": [{"start_idx": ..., "end_idx": ..., "type": ..., "entity": ...}]}',
}
_MOST_OVERLAPS = 0.001  # overlaps per entity that are read without `repair`, as odd tags are in CoNLL columns
_FORM = '{"text": ..., "entities": [{"start": ..., "end": ..., "label": ...}]}'


def entity_line(text: str, entities: list[dict[str, Any]], **members: Any) -> str:
    """The JSON line, without its end, for a text and its entities, a list of dicts."""
    return json_line({"text": text, "entities": entities, **members})


def sentence_line(sentence: Sentence) -> str:
    """The JSON line, without its end, for a `Sentence` with entities."""
    entities = [{"start": start, "end": end, "label": label} for start, end, label in sentence.spans]
    unknown = {"unknown": [list(part) for part in sentence.unknown]} if sentence.unknown else {}
    return entity_line(sentence.text, entities, **unknown)


def read_entities(path: str | PathLike[str], column: int = -1, repair: bool = False) -> list[Sentence]:
    """Reads sentences from JSON, from brat's standoff files, or from CoNLL columns.

    JSON is lines of `kcrf tag`, an export of doccano (JSONL), Label Studio (JSON or JSON-MIN) or Prodigy (JSONL), or a
    file of CLUENER or CMeEE. Several objects may be in one array, and an object may have several lines. A file `x.ann`
    of brat has the entities of `x.txt`, each line of which is a sentence.

    Args:
        path: A UTF-8 file, or a folder with `.ann` files of brat.
        column: As for `kcrf.corpora.read_conll`.
        repair: Whether to repair files. For CoNLL, see `kcrf.corpora.read_conll`. For JSON, the longer of two
            overlapping entities is kept, or the first of two with the same length, and a note on standard error counts
            the others. Defaults to False: files with fewer than one overlap in a thousand entities are read the same
            way, and other overlaps are errors.

    Returns:
        A list of `Sentence`s. Blank lines between JSON lines are skipped, and so are texts of an export that are not
        labeled, which a note on standard error counts. White space at the edges of an entity is removed, and a note on
        standard error counts such entities.

    Raises:
        FileNotFoundError: The file does not exist.
        ValueError: A line is not such an object; an entity is not in the text, or its text differs from the text at its
            offsets; two entities overlap and `repair` is False; or as for `read_conll`. Names the line.
    """
    files = sorted(Path(path).glob("*.ann")) if Path(path).is_dir() else []
    if files:
        return [sentence for file in files for sentence in read_entities(file, column, repair)]
    lines = read_lines(path)
    if is_standoff(path, lines):
        path, rows = read_standoff(path, lines)
        unknown: list[Any] = [[] for _ in rows]
    elif begins_json(lines):
        rows, unknown = _rows(path, lines)
    else:
        return read_conll(path, column, repair, lines)
    rows = trimmed(path, [(number, text, [span[:3] for span in spans]) for number, text, spans in rows])
    rows = _apart(path, rows, repair)
    return [
        _sentence(path, number, text, spans, parts) for (number, text, spans), parts in zip(rows, unknown, strict=True)
    ]


def _rows(path: FilePath, lines: Sequence[str]) -> tuple[list[Row], list[Any]]:
    """For each text `(line number, text, spans)`, spans `(start, end, label, text or None)`; and its unknown parts."""
    objects = json_objects(path, lines)
    items = [item for _, item in objects]
    first = next((item for item in items if item.get("entities") != []), items[0] if items else {})
    if corpus := corpus_of(first):
        return _read_corpus(path, objects, corpus), [[] for _ in objects]
    if tool := tool_of(first):
        texts = read_export(path, objects, tool)
        if any(text.labels for text in texts) and not any(text.spans for text in texts):
            raise ValueError(f"{path}: needs labels of spans. Received: labels of texts, which --task classify reads")
        return [(text.number, text.text, text.spans) for text in texts], [[] for _ in texts]
    rows = [(number, *_parse_item(path, number, item)) for number, item in objects]
    check_offsets(path, rows)
    unknown = [_unknown(path, number, item, text) for (number, item), (_, text, _) in zip(objects, rows)]
    return rows, unknown


def _parse_item(path: object, number: int, item: dict[str, Any]) -> tuple[str, list[Any]]:
    """The text of an object and its spans, `(start, end, label, text or None)`, in order."""
    try:
        if not isinstance(item["text"], str):
            raise TypeError("text must be a string")
        return item["text"], sorted(map(_span, item["entities"]), key=lambda span: span[:2])
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"{path}:{number}: needs {_FORM}; docs/entities.md lists the exports of other tools that are read. "
            f"Received: {json_line(item)[:80]!r} ({type(error).__name__} {error})"
        ) from None


def _span(entity: Any) -> tuple[int, int, str, str | None]:
    is_dict = isinstance(entity, dict)  # or [start, end, label], as spaCy's examples have it
    start, end, label = (entity["start"], entity["end"], entity["label"]) if is_dict else _three(entity)
    if type(start) is not int or type(end) is not int:  # a bool is an int too
        raise TypeError("start and end must be ints")
    if not isinstance(label, str) or not label.isprintable() or not label:
        raise TypeError("label must be a string that can be printed, and not empty")
    text = entity.get("text") if is_dict else None
    return start, end, label, text if isinstance(text, str) else None


def _three(entity: Any) -> list[Any]:
    if not isinstance(entity, list) or len(entity) != 3:
        raise TypeError("an entity must be an object or [start, end, label]")
    return entity


def _apart(path: object, rows: list[Row], repair: bool) -> list[Row]:
    """The rows without entities that overlap others. Refuses such entities unless they are few or `repair` is true."""
    overlaps = [
        (number, *pair) for number, text, spans in rows if _are_within(text, spans) for pair in _overlaps(spans)
    ]
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
    return all(_is_within(text, span) for span in spans)


def _is_within(text: str, span: Sequence[Any]) -> bool:
    return 0 <= span[0] < span[1] <= len(text)


def _overlaps(spans: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Yields each span that begins before the end of an earlier one, after that one."""
    furthest: Any = spans[0] if spans else None
    for span in spans[1:]:
        if span[0] < furthest[1]:
            yield furthest, span
        furthest = max(furthest, span, key=lambda item: item[1])


def _without_overlaps(spans: Iterable[Any]) -> list[Any]:
    """The spans without those that overlap a longer one, or one of the same length before them."""
    kept = []
    for span in sorted(spans, key=lambda span: (span[0] - span[1], span[0])):
        if all(span[1] <= other[0] or other[1] <= span[0] for other in kept):
            kept.append(span)
    return sorted(kept, key=lambda span: span[:2])


def _unknown(path: object, number: int, item: dict[str, Any], text: str) -> list[tuple[int, int]]:
    """The member "unknown" of an object as a sorted list of `(start, end)`."""
    unknown = item.get("unknown", [])
    if unknown is True:
        return [(0, len(text))] if text else []
    is_list = isinstance(unknown, list) and all(isinstance(part, list) and len(part) == 2 for part in unknown)
    if not is_list or any(type(x) is not int for part in unknown for x in part):
        raise ValueError(f"{path}:{number}: needs `unknown` as true or [[start, end], ...]. Received: {unknown!r}")
    wrong = next((part for part in unknown if not _is_within(text, part)), None)
    if wrong:
        raise ValueError(
            f"{path}:{number}: a part of `unknown` must be within the {len(text)} characters of the text, start before "
            f"end. Received: {wrong}"
        )
    return sorted(map(tuple, unknown))


def _sentence(path: object, number: int, text: str, spans: list[Any], unknown: list[tuple[int, int]]) -> Sentence:
    try:
        return Sentence(text, spans, [], outside_spans(spans, unknown))
    except ValueError as error:
        units = [] if max((end for _, end, _ in spans), default=0) <= len(text) else fitting_units([(text, spans)])
        hint = f"; they are within it in {' or '.join(units)}" if units else ""
        raise ValueError(f"{path}:{number}: {error}{hint}") from None


# -- public corpora


def corpus_of(item: dict[str, Any]) -> str | None:
    """The public corpus that a JSON object is from, or None.

    >>> corpus_of({"text": "李雷在上海", "label": {"name": {"李雷": [[0, 1]]}}})
    'CLUENER'
    """
    if isinstance(item.get("label"), dict):
        return "CLUENER"
    entities = item.get("entities")
    are_of_cmeee = isinstance(entities, list) and any(isinstance(x, dict) and "start_idx" in x for x in entities)
    return "CMeEE" if are_of_cmeee else None


def _read_corpus(
    path: str | PathLike[str], objects: Sequence[tuple[int, dict[str, Any]]], corpus: str
) -> list[tuple[int, str, list[tuple[int, int, str]]]]:
    """The texts of a public corpus, `(line number, text, spans)`, spans as sorted half-open `(start, end, label)`.

    The end of an entity is its last character or, in some releases of CMeEE, the position after its last character. The
    texts of the entities decide, once for the whole file.

    Args:
        path: The file, for messages.
        objects: Its objects with the numbers of their lines.
        corpus: The corpus, as `corpus_of` names it.

    Raises:
        ValueError: An object does not have the form of the corpus, or an entity is not at its offsets. Names the line.
    """
    half_open = [(number, *_parse(path, number, item, corpus)) for number, item in objects]
    inclusive = [(number, text, [(a, b + 1, *rest) for a, b, *rest in spans]) for number, text, spans in half_open]
    rows = min(inclusive, half_open, key=lambda rows: len(misplaced(rows)))
    check_offsets(path, rows)
    return [(number, text, sorted(span[:3] for span in spans)) for number, text, spans in rows]


def _parse(path: object, number: int, item: dict[str, Any], corpus: str) -> tuple[str, list[Any]]:
    """The text of an object and its spans `(start, end, label, text)`, with the offsets of the file."""
    try:
        entities = list(_entities_of_cluener(item) if corpus == "CLUENER" else map(_entity_of_cmeee, item["entities"]))
        if not all(isinstance(string, str) for string in (item["text"], *(entity[3] for entity in entities))):
            raise TypeError("texts must be strings")
        for start, end, label, _ in entities:
            if type(start) is not int or type(end) is not int:  # a bool is an int too
                raise TypeError("start and end must be ints")
            if not isinstance(label, str) or not label or not label.isprintable():
                raise TypeError("a label must be text that can be printed, and not empty")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"{path}:{number}: needs {_FORMS[corpus]}, as {corpus} has it. Received: {str(item)[:80]!r} "
            f"({type(error).__name__} {error})"
        ) from None
    return item["text"], entities


def _entities_of_cluener(item: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    for label, entities in item["label"].items():
        for entity, places in entities.items():
            yield from ((start, end, label, entity) for start, end in places)


def _entity_of_cmeee(entity: dict[str, Any]) -> tuple[Any, ...]:
    return entity["start_idx"], entity["end_idx"], entity["type"], entity["entity"]

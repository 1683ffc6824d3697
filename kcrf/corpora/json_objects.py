"""The JSON objects of a file: one per line, several lines each, or in one array."""

import json
import re
from collections.abc import Sequence
from os import PathLike
from typing import Any

from kcrf.corpora.lines import BEGINS_ARRAY, BEGINS_OBJECT

_BETWEEN = re.compile(r"[\s,]*")


def begins_json(lines: Sequence[str]) -> bool:
    """Whether the first lines that are not blank begin a JSON object, or an array of objects."""
    begin = [line for line in lines if line.strip()][:2]  # the first line may be a brace alone
    text = "\n".join(begin)
    if BEGINS_OBJECT.match(text) or BEGINS_ARRAY.match(text):
        return True
    return text.lstrip()[:2] in ('["', "[[") and _is_json(begin[0])


def json_objects(path: str | PathLike[str], lines: Sequence[str]) -> list[tuple[int, dict[str, Any]]]:
    """The objects of a file with their line numbers. Pairs of a text and an object, as in spaCy, are objects."""
    first = next((line for line in lines if line.strip()), "")
    if first.lstrip().startswith(("{", '["')) and _is_json(first):
        return _unwrapped([(n, _object(path, n, line)) for n, line in enumerate(lines, 1) if line.strip()])
    return _unwrapped(_objects_of_document(path, "\n".join(lines)))


def _unwrapped(objects: list[tuple[int, dict[str, Any]]]) -> list[tuple[int, dict[str, Any]]]:
    """The objects in a list of the only object, as in {"version": ..., "data": [...]}; other objects as they are."""
    number, item = objects[0] if objects else (0, {})
    parts = next((item[name] for name in ("data", "annotations", "examples", "documents") if name in item), None)
    if len(objects) != 1 or not isinstance(parts, list) or not {"text", "tokens", "id"}.isdisjoint(item):
        return objects
    parts = [_as_object(part) for part in parts if part is not None]
    return [(number, part) for part in parts] if parts and all(isinstance(part, dict) for part in parts) else objects


def refuse_json_lines(path: str | PathLike[str], lines: Sequence[str]) -> None:
    """Raises ValueError if a line of a file that does not begin as JSON is a JSON object: two files were joined."""
    for number, line in enumerate(lines, 1):
        if line.startswith('{"') and _is_json(line):
            received = f"JSON after other lines: {line[:60]!r}"
            raise ValueError(f"{path}:{number}: needs one format in the whole file. Received: {received}")


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _object(path: object, number: int, line: str) -> dict[str, Any]:
    try:
        item = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}:{number}: needs a JSON object on one line. Received: {error}") from None
    return _checked(path, number, item)


def _as_object(item: Any) -> Any:
    """A pair of a text and an object as an object with the member "text"."""
    return {"text": item[0], **item[1]} if isinstance(item, list) and list(map(type, item)) == [str, dict] else item


def _checked(path: object, number: int, item: Any) -> dict[str, Any]:
    item = _as_object(item)
    if not isinstance(item, dict):
        raise ValueError(f"{path}:{number}: needs a JSON object. Received: {json.dumps(item, ensure_ascii=False)[:80]}")
    return item


def _objects_of_document(path: object, text: str) -> list[tuple[int, dict[str, Any]]]:
    """The objects of an array, or objects one after the other, on any number of lines."""
    decoder, objects, line, counted = json.JSONDecoder(), [], 1, 0
    is_array = text.lstrip().startswith("[")
    place = text.index("[") + 1 if is_array else 0
    while True:
        place = _BETWEEN.match(text, place).end()  # type: ignore[union-attr]  # matches always
        line, counted = line + text.count("\n", counted, place), place
        if place == len(text) or is_array and text[place] == "]":
            rest = text[place:]
            if is_array and rest.strip() != "]":
                received = repr(rest[1:].strip()[:40]) if rest else "the end of the file"
                raise ValueError(f"{path}:{line}: needs one JSON array, which ends in ]. Received: {received}")
            return objects
        try:
            item, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}:{getattr(error, 'lineno', line)}: needs JSON. Received: {error}") from None
        objects.append((line, _checked(path, line, item)))

"""Reads the JSON of public corpora with Chinese entities: CLUENER and CMeEE."""

from collections.abc import Sequence
from os import PathLike
from typing import Any

from kcrf.corpora.offsets import check_offsets, misplaced

_FORMS = {
    "CLUENER": '{"text": ..., "label": {label: {entity: [[start, end], ...]}}}',
    "CMeEE": '{"text": ..., "entities": [{"start_idx": ..., "end_idx": ..., "type": ..., "entity": ...}]}',
}


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


def read_corpus(
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


def _parse(path, number, item, corpus):
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


def _entities_of_cluener(item):
    for label, entities in item["label"].items():
        for entity, places in entities.items():
            yield from ((start, end, label, entity) for start, end in places)


def _entity_of_cmeee(entity):
    return entity["start_idx"], entity["end_idx"], entity["type"], entity["entity"]

"""Finds the format of a data file and reads it, or names the task that reads it."""

from collections.abc import Sequence

from kcrf.corpora.column_formats import LINE_FORMATS
from kcrf.corpora.formats import Annotated, Item, Source, Tagged
from kcrf.corpora.json_corpora import JSON_FORMATS
from kcrf.corpora.json_objects import begins_json, json_objects, refuse_json_lines
from kcrf.corpora.lines import FilePath
from kcrf.corpora.offsets import check_offsets

_ENTITIES = '{"text": "Kim slept", "entities": [{"start": 0, "end": 3, "label": "PER"}]}'
_TASKS = {  # what each task needs, the function that reads it, and JSON for other formats to be converted to
    "ner": ("texts with entities, or tokens with their tags", "read_entities", _ENTITIES),
    "pos": ("tokens with their tags", "read_tagged", '{"tokens": ["Kim", "slept"], "tags": ["PROPN", "VERB"]}'),
    "cws": ("one sentence of words per line", "read_segmented", '{"words": ["今天", "天气"]}'),
    "classify": ("texts with a label each", "read_classified", '{"text": "a good film", "label": "pos"}'),
}


def read_items(path: FilePath, lines: Sequence[str], task: str) -> list[Item] | None:
    """Reads a file in one of the formats. Returns None if the file has columns, segmented text or a table."""
    is_json = begins_json(lines) and (task != "cws" or ":" in "".join(lines))
    source = Source(path, lines, task, json_objects(path, lines) if is_json else ())
    if not is_json and task != "classify":
        refuse_json_lines(path, lines)
    for each in JSON_FORMATS if is_json else LINE_FORMATS:
        if found := each.find(source):
            if task not in each.tasks:
                _, reader, _ = _TASKS[each.tasks[0]]
                received = f"{each.name}, which --task {each.tasks[0]} and `kcrf.corpora.{reader}` read"
                raise _refusal(source, received)
            return _checked(path, each.read(source, found))
    is_xml = source.first_line.startswith(("<?xml", "<!DOCTYPE"))
    if is_xml or is_json and task != "classify":
        received = "an XML document" if is_xml else f"JSON objects with {', '.join(source.first) or 'no members'}"
        raise _refusal(source, f"{received}; convert it to lines such as {_TASKS[task][-1]}")
    return None


def _refusal(source: Source, received: str) -> ValueError:
    return ValueError(f"{source.path}: needs {_TASKS[source.task][0]}. Received: {received}")


def _checked(path: FilePath, items: list[Item]) -> list[Item]:
    """The items with their spans in order, which must be in their texts."""
    ordered = [
        item._replace(spans=sorted(item.spans, key=lambda span: span[:2])) if isinstance(item, Annotated) else item
        for item in items
    ]
    check_offsets(path, [(item.number, item.text, item.spans) for item in ordered if isinstance(item, Annotated)])
    return ordered


def tokens_of(path: FilePath, text: Annotated) -> Tagged:
    """The tokens of a text that has a span for each of its tokens, and the labels of the spans."""
    last = 0
    extents = [(start, end) for start, end, *_ in text.spans]
    for start, end in [*extents, (len(text.text), len(text.text))]:
        if not last <= start <= end <= len(text.text) or text.text[last:start].strip():
            received = f"{text.text[last:start].strip()[:20]!r} without one" if last <= start else "two that overlap"
            raise ValueError(f"{path}:{text.number}: needs a labeled span for each token of it. Received: {received}")
        last = end
    return Tagged(text.number, [text.text[start:end] for start, end in extents], [span[2] for span in text.spans])

"""The formats of JSON: for each, a function from an object to its sentences, below a line that recognizes it."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from kcrf.corpora.formats import Annotated, Format, Item, Source, Span, Tagged, note, span, string
from kcrf.corpora.lines import FilePath
from kcrf.corpora.offsets import from_units
from kcrf.corpora.sentences import UNKNOWN
from kcrf.corpora.word_classes import are_word_tags, words_by_tags
from kcrf.files import json_line, read_json
from kcrf.tags.scheme import ENTITY_TAG

Object = dict[str, Any]
# From a line number and its object; None: it has no labels.
Parse = TypeVar("Parse", bound=Callable[[int, Object], Item | list[Item] | None])
_ALL = ("ner", "pos", "cws", "classify")
JSON_FORMATS: list[Format] = []  # the first one that recognizes a file reads it


def json_format(
    name: str,
    tasks: Sequence[str],
    is_of: Callable[[Object], Any],
    form: str = "",
    finish: Callable[[Source, list[Any]], list[Any]] = lambda source, texts: texts,
) -> Callable[[Parse], Parse]:
    """Adds the format whose objects a function parses. `finish` sees all of its texts."""

    def add(parse: Parse) -> Parse:
        def read(source: Source, _: object) -> list[Item]:
            return finish(source, _parsed(source, parse, name, form or f"an object as {name.split(' of ')[-1]} has it"))

        JSON_FORMATS.append(Format(name, tasks, lambda source: is_of(source.first), read))
        return parse

    return add


def _parsed(source: Source, parse: Callable[..., Any], name: str, form: str) -> list[Item]:
    items: list[Item] = []
    skipped = 0
    for number, item in source.objects:
        try:
            parsed = parse(number, item)
            for text in parsed if isinstance(parsed, list) else [parsed]:
                string(text.text if isinstance(text, Annotated) else "")
        except (KeyError, TypeError, IndexError, ValueError, AttributeError) as error:
            raise ValueError(
                f"{source.path}:{number}: needs {form}. Received: {json_line(item)[:80]!r} "
                f"({type(error).__name__} {error})"
            ) from None
        items += parsed if isinstance(parsed, list) else [] if parsed is None else [parsed]
        skipped += parsed is None
    if not items:
        received = f"{skipped:,} texts of {name} without labels"
        raise ValueError(f"{source.path}: needs texts that are labeled. Received: {received}")
    note(source.path, f"skipped {skipped:,} texts that are not labeled, or that the annotator rejected", skipped)
    return items


def has(name: str, kind: type, member: str = "") -> Callable[[Object], bool]:
    """Makes a test for objects: whether `name` has a value of a type, or a list with an object that has `member`."""

    def is_of(item: Object) -> bool:
        value = item.get(name)
        are_parts = not member or any(isinstance(part, dict) and member in part for part in value or ())
        return isinstance(value, kind) and are_parts

    return is_of


def spans_of(values: Iterable[Any], start: str, end: str, label: str, text: str = "text") -> list[Span]:
    """The spans of objects whose members have these names, or of lists `[start, end, label]`."""
    spans = []
    for value in values:
        if isinstance(value, dict):
            name = label if label in value else "type"
            spans.append(span(value[start], value[end], value[name], value.get(text, value.get("entity"))))
        elif isinstance(value, list) and len(value) == 3:
            spans.append(span(*value))
        else:
            raise TypeError("an entity must be an object or [start, end, label]")
    return spans


# Label Studio


def _are_regions(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(part, dict) and "labels" in part for part in value)


def _annotations(item: Object) -> list[Object]:
    """The annotations that were not skipped or canceled."""
    annotations = item.get("annotations", item.get("completions")) or []
    return [a for a in annotations if not a.get("was_cancelled") and not a.get("skipped")]


def _note_several(source: Source, texts: list[Annotated]) -> list[Annotated]:
    several = sum(len(_annotations(item)) > 1 for _, item in source.objects)
    note(source.path, f"{several:,} texts have several annotations: read the ground truth, or else the first", several)
    return texts


def _texts_of_data(data: Object) -> tuple[str, str | None]:
    """The text, and the second text or None: from the members with the usual names, or the only string."""
    strings = [data["text"]] if isinstance(data.get("text"), str) else [x for x in data.values() if isinstance(x, str)]
    if len(strings) != 1:
        raise ValueError(f"needs the text in the member `text` of `data`, not in one of {', '.join(data)}")
    if re.match(r"(/data/|[a-z][a-z0-9+.-]*://)\S+$", strings[0]):
        raise ValueError(f"needs the text itself, not the address of a file: {strings[0]}")
    return strings[0], data.get("text_b") if isinstance(data.get("text"), str) else None


def _region(value: Object) -> Span:
    """The span of a region, which has one label."""
    (label,) = value.get("labels") or value["hypertextlabels"]
    return span(value["start"], value["end"], label, value.get("text"))


@json_format(
    "Label Studio",
    _ALL,
    lambda item: isinstance(item.get("data"), dict) and {"annotations", "completions", "predictions"} & item.keys(),
    finish=_note_several,
)
def _of_label_studio(number: int, item: Object) -> Annotated | None:
    annotations = _annotations(item)
    if not annotations:
        return None
    chosen = next((annotation for annotation in annotations if annotation.get("ground_truth")), annotations[0])
    spans, labels = [], []
    for result in chosen["result"]:
        value = result.get("value", {})
        if result.get("type") in ("labels", "hypertextlabels"):
            spans.append(_region(value))
        elif result.get("type") == "choices":
            labels += map(string, value["choices"])
        elif str(result.get("type")).endswith("labels"):
            raise ValueError(f"{result['type']} are not read, only labels of the tag Text")
    text, text_b = _texts_of_data(item["data"])
    return Annotated(number, text, spans, labels, text_b)


@json_format("Label Studio (JSON-MIN)", _ALL, lambda x: "annotation_id" in x or any(map(_are_regions, x.values())))
def of_json_min(number: int, item: Object) -> Annotated:
    """Reads an object of JSON-MIN, or a row of a table of Label Studio."""
    regions = [region for value in item.values() if _are_regions(value) for region in value]
    labels = [item["label"]] if isinstance(item.get("label"), str) else []
    text, text_b = _texts_of_data(item)
    return Annotated(number, text, list(map(_region, regions)), labels, text_b)


# tokens with tags: Hugging Face's token classification, `kcrf tag`, `kcrf segment`

_TEXTS = ("text", "sentence")
_TOKENS = ("tokens", "words", "token", "word", "chars", *_TEXTS)
TAGS = {
    "ner": ("ner_tags", "ner", "entity_tags", "bio_tags", "labels", "label", "tags", "tag"),
    "pos": ("pos_tags", "upos", "pos", "xpos", "tags", "tag", "labels", "label", "ner_tags", "ner"),
}
_NAMES = ("names", "label_names", "label_list", "id2label")


def _tokens_and_tags(item: Object, task: str) -> tuple[Any, str | None]:
    """The tokens of an object, and the name of the member with their tags; None for what it lacks."""
    tags = next((name for name in TAGS.get(task, ()) if isinstance(item.get(name), list)), None)
    tokens = next((item[name] for name in _TOKENS if isinstance(item.get(name), list)), None)
    if tokens is None and tags is not None and _are_tags(item[tags]):  # of the characters or the words of a text
        text = next((item[name] for name in _TEXTS if isinstance(item.get(name), str)), "")
        candidates = (list(text), text.split(), list("".join(text.split())))
        tokens = next((x for x in candidates if len(x) == len(item[tags])), text)
    return tokens, tags


def _are_tags(values: Sequence[Any]) -> bool:
    return bool(values) and all(isinstance(x, str) and (x in UNKNOWN or ENTITY_TAG.fullmatch(x)) for x in values)


def _is_of_tokens(source: Source) -> bool:
    tokens, tags = _tokens_and_tags(source.first, "ner")
    has_tokens = "tokens" in source.first or "words" in source.first or tokens is not None and tags is not None
    return (has_tokens or any(name in source.first for name in _NAMES)) and not _is_of_prodigy(source.first)


def _read_tokens(source: Source, _: object) -> list[Item]:
    items: list[Item] = []
    names: Any = None
    for number, item in source.objects:
        tokens, member = _tokens_and_tags(item, source.task)
        if tokens is None and (found := next((item[name] for name in _NAMES if name in item), None)):
            names = found
            continue
        tags = item[member] if member else [None] * len(tokens or ()) if source.task == "cws" else None
        where = f"{source.path}:{number}: needs"
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens) or tags is None:
            form = '{"tokens": [...], "tags": [...]}, with strings' if source.task != "cws" else '{"words": [...]}'
            raise ValueError(f"{where} {form}. Received: {json_line(item)[:80]}")
        if any(type(tag) is int for tag in tags):
            names = names or _names_beside(source.path, member)
            tags = [_named(tag, names, where) for tag in tags]
        if not all(tag is None or isinstance(tag, str) for tag in tags):
            raise ValueError(f"{where} tags that are strings, or integers and their names. Received: {tags!r:.80}")
        others = (x for x in item.values() if x is not tokens and isinstance(x, list) and are_word_tags(x))
        if source.task == "cws" and (found := next(others, None)):  # of characters
            tokens = words_by_tags(f"{source.path}:{number}", tokens, found)
            tags = [None] * len(tokens)
        items += [Tagged(number, tokens, tags)] if tokens else []
    return items


def _named(tag: Any, names: Any, where: str) -> str | None:
    """The name of a tag that is an integer. Negative integers are unknown tags."""
    if type(tag) is not int or tag < 0:
        return None if type(tag) is int else tag
    known = names if isinstance(names, dict) else dict(enumerate(names)) if isinstance(names, list) else {}
    name = known.get(tag, known.get(str(tag)))
    if not isinstance(name, str):
        raise ValueError(
            f'{where} the names of the tags, as a first line {{"names": ["O", "B-PER", ...]}} or in dataset_info.json '
            f"beside the file. Received: the tag {tag}"
        )
    return name


def _names_beside(path: FilePath, member: str | None) -> Any:
    """The names of the values of a member in Hugging Face's description of a data set beside a file."""
    files = [Path(path).with_name(name) for name in ("dataset_info.json", "dataset_infos.json")]
    parts: list[tuple[bool, Any]] = [(False, read_json(file)) for file in files if file.is_file()]
    for inside, value in parts:  # which grows
        if isinstance(value, dict):
            if inside and isinstance(value.get("names"), list):
                return value["names"]
            parts += [(inside or name == member, part) for name, part in value.items()]
    return None


JSON_FORMATS.append(Format("tokens with their tags", ("ner", "pos", "cws"), _is_of_tokens, _read_tokens))


# Prodigy


def _is_of_prodigy(item: Object) -> bool:
    return isinstance(item.get("spans"), list) or bool({"_task_hash", "_input_hash"} & item.keys())


def _with_all_answers(source: Source, texts: list[Annotated]) -> list[Annotated]:
    """Joins binary answers, which are one span each of a text that occurs several times. Their text is else unknown."""
    groups: dict[str, list[Annotated]] = {}
    for text in texts:
        groups.setdefault(text.text, []).append(text)
    if not any(len({tuple(t.spans) for t in group}) > 1 for group in groups.values()):
        return texts
    note(source.path, "joined binary answers to the same text; text without an answer is unknown", 1)
    joined = []
    for group in groups.values():
        spans = list({span for text in group for span in text.spans})
        joined.append(group[0]._replace(spans=spans, unknown=[(0, len(group[0].text))]))
    return joined


@json_format("Prodigy", _ALL, _is_of_prodigy, finish=_with_all_answers)
def _of_prodigy(number: int, item: Object) -> Annotated | None:
    if item.get("answer", "accept") != "accept":
        return None
    labels = item["accept"] if isinstance(item.get("accept"), list) else [item["label"]] if "label" in item else []
    spans = spans_of(item.get("spans", []), "start", "end", "label")
    return Annotated(number, item["text"], spans, list(map(string, labels)))


# doccano


def _is_of_doccano(item: Object) -> bool:
    """Whether an object has labels, or the entities of a project with relations or intents; spaCy's have none."""
    has_labels = any(isinstance(item.get(name), list) for name in ("label", "labels")) and "probabilities" not in item
    has_entities = isinstance(item.get("entities"), list) and "cats" in item
    return has_labels or has_entities or has("entities", list, "start_offset")(item)


def _from_javascript(source: Source, texts: list[Annotated]) -> list[Annotated]:
    """The texts with spans in characters. doccano counts UTF-16 code units: a character beyond U+FFFF is two."""
    moved: Any = [[(from_units(t.text, a), from_units(t.text, b), *label) for a, b, *label in t.spans] for t in texts]
    changed = sum(spans != t.spans for spans, t in zip(moved, texts, strict=True))
    fits = all(None not in span[:2] for spans in moved for span in spans)
    unit = "UTF-16 code units, as doccano counts" if fits else "characters, since they do not fit as UTF-16 code units"
    note(source.path, f"{changed:,} texts have labels after an emoji: read their offsets as {unit}", changed)
    return [t._replace(spans=spans) for t, spans in zip(texts, moved)] if changed and fits else texts


@json_format("doccano", _ALL, _is_of_doccano, finish=_from_javascript)
def _of_doccano(number: int, item: Object) -> Annotated:
    labels = next((item[name] for name in ("label", "labels", "entities", "cats") if name in item), [])
    if labels and all(type(label) in (int, bool, float) for label in labels):
        raise ValueError("labels of a text are read as strings, not as a vector of numbers")
    spans = spans_of([x for x in labels if not isinstance(x, str)], "start_offset", "end_offset", "label")
    text = string(item["text"] if "text" in item else item["data"])  # older versions call the text "data"
    return Annotated(number, text, spans, [label for label in labels if isinstance(label, str)])

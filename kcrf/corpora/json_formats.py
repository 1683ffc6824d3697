"""The formats of JSON: a function for each, from an object to what it holds, and a row of the table at the end."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kcrf.corpora.columns import ENTITY_TAG
from kcrf.corpora.formats import Annotated, Format, Item, Source, Span, Tagged, in_order, note, span, string, triple
from kcrf.corpora.lines import FilePath
from kcrf.corpora.offsets import from_utf16, misplaced
from kcrf.corpora.sentences import UNKNOWN
from kcrf.files import json_line, read_json


def _json(
    name: str,
    tasks: Sequence[str],
    is_of: Callable[[dict[str, Any]], bool],
    parse: Callable[[int, dict[str, Any]], Item | list[Item] | None],
    form: str = "",
    finish: Callable[[Source, list[Any]], list[Any]] = lambda source, texts: texts,
) -> Format:
    """A format of JSON objects."""
    form = form or f"an object as {name} exports it"

    def read(source: Source) -> list[Item]:
        items: list[Item] = []
        skipped = 0
        for number, item in source.objects:
            try:
                parsed = parse(number, item)
            except (KeyError, TypeError, IndexError, ValueError, AttributeError) as error:
                raise ValueError(
                    f"{source.path}:{number}: needs {form}. Received: {json_line(item)[:80]!r} "
                    f"({type(error).__name__} {error})"
                ) from None
            items += parsed if isinstance(parsed, list) else [] if parsed is None else [parsed]
            skipped += parsed is None
        if not items:
            raise ValueError(
                f"{source.path}: needs texts that are labeled. Received: {skipped:,} texts of {name} without labels"
            )
        note(source.path, f"skipped {skipped:,} texts that are not labeled, or that the annotator rejected", skipped)
        return finish(source, items)

    return Format(name, tasks, lambda source: is_of(source.first), read)


# kcrf, and spaCy's examples


def _of_kcrf(number: int, item: dict[str, Any]) -> Annotated:
    text = string(item["text"])
    spans = [
        span(x["start"], x["end"], x["label"], x.get("text")) if isinstance(x, dict) else triple(x)
        for x in item["entities"]
    ]
    return Annotated(number, text, in_order(spans), unknown=_unknown(item.get("unknown", []), text))


def _unknown(parts: Any, text: str) -> list[tuple[int, int]]:
    """The member "unknown" of an object as a sorted list of `(start, end)`."""
    if parts is True:
        return [(0, len(text))] if text else []
    are_pairs = isinstance(parts, list) and all(isinstance(part, list) and len(part) == 2 for part in parts)
    if not are_pairs or any(type(x) is not int for part in parts for x in part):
        raise TypeError(f"`unknown` must be true or [[start, end], ...], not {parts!r}")
    wrong = next((part for part in parts if not 0 <= part[0] < part[1] <= len(text)), None)
    if wrong:
        raise ValueError(f"a part of `unknown` must be within the {len(text)} characters of the text, not {wrong}")
    return sorted((start, end) for start, end in parts)


# doccano


def _is_of_doccano(item: dict[str, Any]) -> bool:
    """Whether an object has labels, or the entities of a project with relations or intents; spaCy's have none."""
    spans = item.get("entities")
    return any(isinstance(item.get(name), list) for name in ("label", "labels")) or (
        isinstance(spans, list) and ("cats" in item or any(isinstance(s, dict) and "start_offset" in s for s in spans))
    )


def _of_doccano(number: int, item: dict[str, Any]) -> Annotated:
    labels = next((item[name] for name in ("label", "labels", "entities", "cats") if name in item), [])
    spans = [
        span(x["start_offset"], x["end_offset"], x["label"]) if isinstance(x, dict) else triple(x)
        for x in labels
        if not isinstance(x, str)
    ]
    text = string(item["text"] if "text" in item else item["data"])  # older versions call the text "data"
    return Annotated(number, text, in_order(spans), [label for label in labels if isinstance(label, str)])


def _from_javascript(source: Source, texts: list[Annotated]) -> list[Annotated]:
    """The texts with spans in characters. doccano counts UTF-16 code units: a character beyond U+FFFF is two."""
    moved: list[Any] = [
        [(from_utf16(t.text, a), from_utf16(t.text, b), *label) for a, b, *label in t.spans] for t in texts
    ]
    changed = sum(spans != t.spans for spans, t in zip(moved, texts, strict=True))
    fits = all(None not in span[:2] for spans in moved for span in spans)
    unit = "UTF-16 code units, as doccano counts" if fits else "characters, since they do not fit as UTF-16 code units"
    note(source.path, f"{changed:,} texts have labels after an emoji: read their offsets as {unit}", changed)
    return [t._replace(spans=spans) for t, spans in zip(texts, moved)] if changed and fits else texts


# Label Studio


def _are_regions(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(part, dict) and "labels" in part for part in value)


def _of_label_studio(number: int, item: dict[str, Any]) -> Annotated | None:
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
    return Annotated(number, text, in_order(spans), labels, text_b)


def _annotations(item: dict[str, Any]) -> list[dict[str, Any]]:
    """The annotations that were not skipped or canceled."""
    annotations = item.get("annotations", item.get("completions")) or []
    return [a for a in annotations if not a.get("was_cancelled") and not a.get("skipped")]


def _note_several(source: Source, texts: list[Annotated]) -> list[Annotated]:
    several = sum(len(_annotations(item)) > 1 for _, item in source.objects)
    note(source.path, f"{several:,} texts have several annotations: read the ground truth, or else the first", several)
    return texts


def _texts_of_data(data: dict[str, Any]) -> tuple[str, str | None]:
    """The text, and the second text or None: those of the usual names, or the only string."""
    strings = [data["text"]] if isinstance(data.get("text"), str) else [x for x in data.values() if isinstance(x, str)]
    if len(strings) != 1:
        raise ValueError(f"needs the text in the member `text` of `data`, not in one of {', '.join(data)}")
    if re.match(r"(/data/|https?://|s3://)\S+$", strings[0]):
        raise ValueError(f"needs the text itself, not the address of a file: {strings[0]}")
    return strings[0], data.get("text_b") if isinstance(data.get("text"), str) else None


def _region(value: dict[str, Any]) -> Span:
    """The span of a region, which has one label."""
    (label,) = value.get("labels") or value["hypertextlabels"]
    return span(value["start"], value["end"], label, value.get("text"))


def of_json_min(number: int, item: dict[str, Any]) -> Annotated:
    """Reads an object of JSON-MIN, or a row of a table of Label Studio."""
    regions = [region for value in item.values() if _are_regions(value) for region in value]
    labels = [item["label"]] if isinstance(item.get("label"), str) else []
    text, text_b = _texts_of_data(item)
    return Annotated(number, text, in_order(map(_region, regions)), labels, text_b)


# Prodigy


def _of_prodigy(number: int, item: dict[str, Any]) -> Annotated | None:
    if item.get("answer", "accept") != "accept":
        return None
    spans = [span(x["start"], x["end"], x["label"]) for x in item.get("spans", [])]
    labels = item["accept"] if isinstance(item.get("accept"), list) else [item["label"]] if "label" in item else []
    return Annotated(number, string(item["text"]), in_order(spans), list(map(string, labels)))


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
        spans = in_order({span for text in group for span in text.spans})
        joined.append(group[0]._replace(spans=spans, unknown=[(0, len(group[0].text))]))
    return joined


# public corpora


def _of_cluener(number: int, item: dict[str, Any]) -> Annotated:
    spans = [
        span(start, end, label, string(entity))
        for label, entities in item["label"].items()
        for entity, places in entities.items()
        for start, end in places
    ]
    return Annotated(number, string(item["text"]), in_order(spans))


def _of_cmeee(number: int, item: dict[str, Any]) -> Annotated:
    spans = [span(x["start_idx"], x["end_idx"], x["type"], string(x["entity"])) for x in item["entities"]]
    return Annotated(number, string(item["text"]), in_order(spans))


def _of_ccks(number: int, item: dict[str, Any]) -> Annotated:
    spans = [span(x["start_pos"], x["end_pos"], x["label_type"], x.get("entity")) for x in item["entities"]]
    return Annotated(number, string(item["originalText"]), in_order(spans))


def _with_either_end(source: Source, texts: list[Annotated]) -> list[Annotated]:
    """Reads the end of an entity as its last character or as the position after it, as the texts of entities say."""
    inclusive = [t._replace(spans=[(a, b + 1, label, text) for a, b, label, text in t.spans]) for t in texts]
    if all(text is None for t in texts for *_, text in t.spans):
        return texts
    wrong = [len(misplaced([(t.number, t.text, t.spans) for t in rows])) for rows in (inclusive, texts)]
    return inclusive if wrong[0] <= wrong[1] else texts


# tokens with tags: Hugging Face's token classification, `kcrf tag`, `kcrf segment`, spaCy's training files

_TEXTS = ("text", "sentence")
_TOKENS = ("tokens", "words", "token", "word", "chars", *_TEXTS)
_TAGS = {
    "ner": ("ner_tags", "ner", "entity_tags", "bio_tags", "labels", "label", "tags", "tag"),
    "pos": ("pos_tags", "upos", "pos", "xpos", "tags", "tag", "labels", "label", "ner_tags", "ner"),
}
_NAMES = ("names", "label_names", "label_list", "id2label")


def _tokens_and_tags(item: dict[str, Any], task: str) -> tuple[Any, str | None]:
    """The tokens of an object, and the name of the member with their tags; None for what it lacks."""
    tags = next((name for name in _TAGS.get(task, ()) if isinstance(item.get(name), list)), None)
    tokens = next((item[name] for name in _TOKENS if isinstance(item.get(name), list)), None)
    if tokens is None and tags is not None and _are_tags(item[tags]):  # of the characters or the words of a text
        text = next((item[name] for name in _TEXTS if isinstance(item.get(name), str)), "")
        tokens = next(
            (x for x in (list(text), text.split(), list("".join(text.split()))) if len(x) == len(item[tags])), text
        )
    return tokens, tags


def _are_tags(values: Sequence[Any]) -> bool:
    return bool(values) and all(isinstance(x, str) and (x in UNKNOWN or ENTITY_TAG.fullmatch(x)) for x in values)


def _is_of_tokens(source: Source) -> bool:
    tokens, tags = _tokens_and_tags(source.first, "ner")
    has_tokens = "tokens" in source.first or "words" in source.first or tokens is not None and tags is not None
    return (has_tokens or any(name in source.first for name in _NAMES)) and not _is_of_prodigy(source.first)


def _is_of_prodigy(item: dict[str, Any]) -> bool:
    return isinstance(item.get("spans"), list) or bool({"_task_hash", "_input_hash"} & item.keys())


def _read_tokens(source: Source) -> list[Item]:
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
        items += [Tagged(number, tokens, tags)] if tokens else []
    return items


def _named(tag: Any, names: Any, where: str) -> str | None:
    """The name of a tag that is an integer. Negative integers are unknown tags."""
    if type(tag) is not int or tag < 0:
        return None if type(tag) is int else tag
    name = (
        names.get(str(tag))
        if isinstance(names, dict)
        else names[tag]
        if isinstance(names, list) and tag < len(names)
        else None
    )
    if not isinstance(name, str):
        raise ValueError(
            f'{where} the names of the tags, as a first line {{"names": ["O", "B-PER", ...]}} or in dataset_info.json '
            f"beside the file. Received: the tag {tag}"
        )
    return name


def _names_beside(path: FilePath, member: str | None) -> Any:
    """The names of the values of a member in Hugging Face's description of a data set beside a file."""
    found: list[Any] = []

    def search(value: Any, inside: bool) -> None:
        if isinstance(value, dict):
            found.extend([value["names"]] if inside and isinstance(value.get("names"), list) else [])
            for name, part in value.items():
                search(part, inside or name == member)

    for name in ("dataset_info.json", "dataset_infos.json"):
        if (file := Path(path).with_name(name)).is_file():
            search(read_json(file), False)
    return found[0] if found else None


def _of_spacy(number: int, item: dict[str, Any]) -> list[Item]:
    sentences = [sentence for paragraph in item["paragraphs"] for sentence in paragraph["sentences"]]
    rows = [[(string(x["orth"]), x.get("ner"), x.get("tag")) for x in sentence["tokens"]] for sentence in sentences]
    return [
        Tagged(number, [token for token, *_ in row], ["?" if ner == "-" else ner or tag for _, ner, tag in row])
        for row in rows
    ]


def _has(name: str, kind: type, member: str = "") -> Callable[[dict[str, Any]], bool]:
    """The function that tells whether an object has a member of a type; of a list, with an object that has `member`."""

    def is_of(item: dict[str, Any]) -> bool:
        value = item.get(name)
        are_parts = not member or any(isinstance(part, dict) and member in part for part in value or ())
        return isinstance(value, kind) and are_parts

    return is_of


_RESULTS = {"annotations", "completions", "predictions"}
_ALL = ("ner", "pos", "cws", "classify")
JSON_FORMATS = (
    _json(
        "Label Studio",
        _ALL,
        lambda item: (
            isinstance(item.get("data"), dict) and bool({"annotations", "completions", "predictions"} & item.keys())
        ),
        _of_label_studio,
        finish=_note_several,
    ),
    _json(
        "Label Studio (JSON-MIN)",
        _ALL,
        lambda item: "annotation_id" in item or any(map(_are_regions, item.values())),
        of_json_min,
    ),
    _json(
        "entities of CLUENER",
        ("ner",),
        _has("label", dict),
        _of_cluener,
        '{"text": ..., "label": {label: {entity: [[start, end], ...]}}}, as CLUENER has it',
        _with_either_end,
    ),
    _json(
        "entities of CMeEE",
        ("ner",),
        _has("entities", list, "start_idx"),
        _of_cmeee,
        '{"text": ..., "entities": [{"start_idx": ..., "end_idx": ..., "type": ..., "entity": ...}]}, as CMeEE has it',
        _with_either_end,
    ),
    _json(
        "entities of CCKS",
        ("ner",),
        _has("originalText", str),
        _of_ccks,
        '{"originalText": ..., "entities": [{"start_pos": ..., "end_pos": ..., "label_type": ...}]}, as CCKS has it',
        _with_either_end,
    ),
    _json("training files of spaCy 2", ("ner", "pos"), _has("paragraphs", list), _of_spacy),
    Format("tokens with their tags", ("ner", "pos", "cws"), _is_of_tokens, _read_tokens),
    _json("Prodigy", _ALL, _is_of_prodigy, _of_prodigy, finish=_with_all_answers),
    _json("doccano", _ALL, _is_of_doccano, _of_doccano, finish=_from_javascript),
    _json(
        "texts with entities",
        ("ner",),
        lambda item: "text" in item and "entities" in item,
        _of_kcrf,
        '{"text": ..., "entities": [{"start": ..., "end": ..., "label": ...}]}; docs/entities.md lists other formats',
    ),
)

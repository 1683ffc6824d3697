"""The formats of JSON, continued: those of public corpora, and of kcrf, which are recognized after those of tools."""

from collections.abc import Iterable
from itertools import accumulate
from typing import Any

from kcrf.corpora.conll import join_tokens
from kcrf.corpora.formats import Annotated, Item, Source, Tagged, span, string
from kcrf.corpora.json_formats import JSON_FORMATS as JSON_FORMATS  # with those of this file
from kcrf.corpora.json_formats import Object, has, json_format, spans_of
from kcrf.corpora.offsets import misplaced


def _with_either_end(source: Source, texts: list[Annotated]) -> list[Annotated]:
    """Reads the end of an entity as its last character or as the position after it, as the texts of entities say."""
    inclusive = [t._replace(spans=[(a, b + 1, label, text) for a, b, label, text in t.spans]) for t in texts]
    if all(text is None for t in texts for *_, text in t.spans):
        return texts
    wrong = [len(misplaced([(t.number, t.text, t.spans) for t in rows])) for rows in (inclusive, texts)]
    return inclusive if wrong[0] <= wrong[1] else texts


@json_format("entities of CLUENER", ("ner",), has("label", dict), finish=_with_either_end)
def _of_cluener(number: int, item: Object) -> Annotated:
    places = [(x, label, text) for label, texts in item["label"].items() for text, xs in texts.items() for x in xs]
    return Annotated(number, item["text"], [span(start, end, *names) for (start, end), *names in places])


@json_format("entities of CMeEE", ("ner",), has("entities", list, "start_idx"), finish=_with_either_end)
def _of_cmeee(number: int, item: Object) -> Annotated:
    spans = [span(x["start_idx"], x["end_idx"], x["type"], string(x["entity"])) for x in item["entities"]]
    return Annotated(number, item["text"], spans)


@json_format("entities of CCKS", ("ner",), has("originalText", str), finish=_with_either_end)
def _of_ccks(number: int, item: Object) -> Annotated:
    spans = spans_of(item["entities"], "start_pos", "end_pos", "label_type", "entity")
    return Annotated(number, item["originalText"], spans)


def _tags_of_task(source: Source, items: list[Any]) -> list[Any]:
    """The entity tags of tokens with both tags, or the others."""
    return [x._replace(tags=[pair[source.task == "pos"] or pair[1] for pair in x.tags]) for x in items]


@json_format("training files of spaCy 2", ("ner", "pos"), has("paragraphs", list), finish=_tags_of_task)
def _of_spacy(number: int, item: Object) -> list[Item]:
    items: list[Item] = []
    for sentence in (sentence for paragraph in item["paragraphs"] for sentence in paragraph["sentences"]):
        tags: list[Any] = [({"-": "?"}.get(x.get("ner"), x.get("ner")), x.get("tag")) for x in sentence["tokens"]]
        tokens = [string(x["orth"]) for x in sentence["tokens"]]
        items.append(Tagged(number, tokens, tags))
    return items


# -- entities whose first and last tokens have numbers


def _of_tokens(number: int, tokens: list[str], entities: Iterable[Any], begin: int = 0) -> Annotated:
    """The text of tokens with its entities `(first, last, label)`, tokens numbered from `begin`."""
    text, extents = join_tokens(list(map(string, tokens)))
    spans = []
    for first, last, label in entities:
        if not begin <= first <= last < begin + len(tokens):
            raise ValueError(f"an entity must be within the {len(tokens)} tokens, not from {first} to {last}")
        spans.append(span(extents[first - begin][0], extents[last - begin][1], label))
    return Annotated(number, text, spans, tokens=extents)


@json_format("entities of GLiNER", ("ner",), has("tokenized_text", list))
def _of_gliner(number: int, item: Object) -> Annotated:
    return _of_tokens(number, item["tokenized_text"], item["ner"])


@json_format("entities of DyGIE", ("ner",), lambda item: {"sentences", "ner"} <= item.keys())
def _of_dygie(number: int, item: Object) -> list[Item]:
    """The sentences of a document, as in SciERC; tokens are numbered from its begin."""
    sizes = accumulate(map(len, item["sentences"]), initial=0)
    parts = zip(item["sentences"], item["ner"], strict=True)
    return [_of_tokens(number, *part, begin) for part, begin in zip(parts, sizes)]


@json_format("entities of BioC", ("ner",), has("passages", list))
def _of_bioc(number: int, item: Object) -> list[Item]:
    """The passages of a document, or their sentences. Offsets count from the begin of the document."""
    texts: list[Item] = []
    for part in (part for passage in item["passages"] for part in passage.get("sentences") or [passage]):
        begin, spans = int(part.get("offset", 0)), []
        for entity in part.get("annotations", []):
            (place,) = entity["locations"]  # an entity in several parts is refused
            start = int(place["offset"]) - begin
            spans.append(span(start, start + int(place["length"]), entity["infons"]["type"], entity["text"]))
        texts += [Annotated(number, part["text"], spans)] if part.get("text") else []
    return texts


# -- kcrf, and spaCy's examples


@json_format(
    "texts with entities",
    ("ner",),
    lambda item: "text" in item and "entities" in item,
    '{"text": ..., "entities": [{"start": ..., "end": ..., "label": ...}]}; docs/entities.md lists other formats',
)
def _of_kcrf(number: int, item: Object) -> Annotated:
    text = string(item["text"])
    spans = spans_of(item["entities"], "start", "end", "label")
    return Annotated(number, text, spans, unknown=_unknown(item.get("unknown", []), text))


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

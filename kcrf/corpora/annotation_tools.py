"""Reads the exports of annotation tools (doccano, Label Studio, Prodigy), and writes texts for them to be corrected."""

from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import Any, NamedTuple

from kcrf.corpora.offsets import check_offsets, from_utf16, to_utf16
from kcrf.files import json_line
from kcrf.progress_bars import print_note

_TEXTS = ("text", "data")  # older versions of doccano call the text "data"

Span = tuple[int, int, str, str | None]  # start, end, label, its text or None


class AnnotatedText(NamedTuple):
    """A text as annotators labeled it.

    Attributes:
        number: The line where it begins in its file.
        text: The text.
        spans: A sorted list of `(start, end, label, text of the span or None)`, in characters.
        labels: The labels of the text as a whole.
        text_b: The second text of a pair, or None.
    """

    number: int
    text: str
    spans: list[Span]
    labels: list[str]
    text_b: str | None = None


def tool_of(item: dict[str, Any]) -> str | None:
    """The annotation tool that exported a JSON object, or None.

    >>> tool_of({"text": "李雷", "label": [[0, 2, "PER"]]})
    'doccano'
    """
    if isinstance(item.get("data"), dict) and {"annotations", "completions", "predictions"} & item.keys():
        return "Label Studio"
    if "annotation_id" in item or any(_are_regions(value) for value in item.values()):
        return "Label Studio (JSON-MIN)"
    if isinstance(item.get("spans"), list) or {"_task_hash", "_input_hash"} & item.keys():
        return "Prodigy"
    if any(isinstance(item.get(name), list) for name in ("label", "labels")) or _are_doccano_spans(item):
        return "doccano"
    return None


def _are_regions(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(part, dict) and "labels" in part for part in value)


def _are_doccano_spans(item: dict[str, Any]) -> bool:
    """Whether the entities are those of a project with relations or with intents; spaCy's have no such members."""
    spans = item.get("entities")
    return isinstance(spans, list) and (
        "cats" in item or any(isinstance(s, dict) and "start_offset" in s for s in spans)
    )


def read_export(
    path: str | PathLike[str], objects: Sequence[tuple[int, dict[str, Any]]], tool: str
) -> list[AnnotatedText]:
    """The texts of an export that annotators labeled. A note on standard error counts the others.

    Args:
        path: The file, for messages.
        objects: Its objects with the numbers of their lines.
        tool: The tool, as `tool_of` names it.

    Raises:
        ValueError: An object is not as the tool writes it, or no text is labeled. Names the line.
    """
    texts, skipped, several = [], 0, 0
    for number, item in objects:
        try:
            text = _READERS[tool](number, item)
            several += tool == "Label Studio" and len(_annotations(item)) > 1
        except (KeyError, TypeError, IndexError, ValueError, AttributeError) as error:
            raise ValueError(
                f"{path}:{number}: needs an object as {tool} exports it. Received: {str(item)[:80]!r} "
                f"({type(error).__name__} {error})"
            ) from None
        texts += [text] if text else []
        skipped += text is None
    if not texts:
        raise ValueError(f"{path}: needs texts that are labeled. Received: {skipped:,} texts of {tool} without labels")
    _note(path, f"skipped {skipped:,} texts that are not labeled, or that the annotator rejected", skipped)
    _note(path, f"{several:,} texts have several annotations: read the ground truth, or else the first", several)
    texts = _from_javascript(path, texts) if tool == "doccano" else texts
    check_offsets(path, [text[:3] for text in texts])
    return texts


def tokens_of(path: str | PathLike[str], text: AnnotatedText) -> list[tuple[int, int, str]]:
    """The spans `(start, end, label)` of a text that has one for each of its tokens.

    Raises:
        ValueError: Spans overlap, or a character that is no white space is in no span. Names the line.
    """
    last = 0
    extents = [(start, end) for start, end, *_ in text.spans]
    for start, end in [*extents, (len(text.text), len(text.text))]:
        if not last <= start <= end <= len(text.text) or text.text[last:start].strip():
            received = f"{text.text[last:start].strip()[:20]!r} without one" if last <= start else "two that overlap"
            raise ValueError(
                f"{path}:{text.number}: needs a labeled span for each token of the text. Received: {received}"
            )
        last = end
    return [(start, end, label) for start, end, label, _ in text.spans]


def _note(path: object, text: str, count: int) -> None:
    if count:
        print_note(f"{path}: {text}")


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"needs a string, not {value!r:.40}")
    return value


def _span(start: Any, end: Any, label: Any, text: Any = None) -> Span:
    if type(start) is not int or type(end) is not int:  # a bool is an int too
        raise TypeError("start and end must be ints")
    if not _string(label).isprintable() or not label:
        raise TypeError("a label must be text that can be printed, and not empty")
    return start, end, label, text if isinstance(text, str) else None


def _in_order(spans: Iterable[Span]) -> list[Span]:
    return sorted(spans, key=lambda span: span[:2])


# -- doccano


def _of_doccano(number: int, item: dict[str, Any]) -> AnnotatedText:
    labels = next((item[name] for name in ("label", "labels", "entities", "cats") if name in item), [])
    spans = [_doccano_span(label) for label in labels if not isinstance(label, str)]
    text = next(_string(item[name]) for name in _TEXTS if name in item)
    return AnnotatedText(number, text, _in_order(spans), [label for label in labels if isinstance(label, str)])


def _doccano_span(label: Any) -> Span:
    if isinstance(label, dict):
        return _span(label["start_offset"], label["end_offset"], label["label"])
    start, end, name = label
    return _span(start, end, name)


def _from_javascript(path: object, texts: list[AnnotatedText]) -> list[AnnotatedText]:
    """The texts with spans in characters. doccano counts UTF-16 code units: a character beyond U+FFFF is two."""
    moved: list[Any] = [
        [(from_utf16(t.text, a), from_utf16(t.text, b), *label) for a, b, *label in t.spans] for t in texts
    ]
    changed = sum(spans != t.spans for spans, t in zip(moved, texts, strict=True))
    if not changed:
        return texts
    fits = all(None not in span[:2] for spans in moved for span in spans)
    unit = "UTF-16 code units, as doccano counts" if fits else "characters, since they do not fit as UTF-16 code units"
    _note(path, f"{changed:,} texts have labels after an emoji or the like: read their offsets as {unit}", changed)
    return [t._replace(spans=spans) for t, spans in zip(texts, moved)] if fits else texts


# -- Label Studio


def _of_label_studio(number: int, item: dict[str, Any]) -> AnnotatedText | None:
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
            labels += map(_string, value["choices"])
    text, text_b = _texts_of_data(item["data"])
    return AnnotatedText(number, text, _in_order(spans), labels, text_b)


def _annotations(item: dict[str, Any]) -> list[dict[str, Any]]:
    """The annotations that were not skipped or canceled."""
    annotations = item.get("annotations", item.get("completions")) or []
    return [a for a in annotations if not a.get("was_cancelled") and not a.get("skipped")]


def _texts_of_data(data: dict[str, Any]) -> tuple[str, str | None]:
    """The text, and the second text or None: those of the usual names, or the only string."""
    if isinstance(data.get("text"), str):
        return data["text"], data.get("text_b")
    strings = [value for value in data.values() if isinstance(value, str)]
    if len(strings) != 1:
        raise ValueError(f"needs the text in the member `text` of `data`, not in one of {', '.join(data)}")
    return strings[0], None


def _region(value: dict[str, Any]) -> Span:
    """The span of a region, which has one label."""
    (label,) = value.get("labels") or value["hypertextlabels"]
    return _span(value["start"], value["end"], label, value.get("text"))


def _of_json_min(number: int, item: dict[str, Any]) -> AnnotatedText:
    regions = [region for value in item.values() if _are_regions(value) for region in value]
    labels = [item["label"]] if isinstance(item.get("label"), str) else []
    text, text_b = _texts_of_data(item)
    return AnnotatedText(number, text, _in_order(map(_region, regions)), labels, text_b)


# -- Prodigy


def _of_prodigy(number: int, item: dict[str, Any]) -> AnnotatedText | None:
    if item.get("answer", "accept") != "accept":
        return None
    spans = [_span(span["start"], span["end"], span["label"]) for span in item.get("spans", [])]
    labels = item["accept"] if isinstance(item.get("accept"), list) else [item["label"]] if "label" in item else []
    return AnnotatedText(number, _string(item["text"]), _in_order(spans), list(map(_string, labels)))


_READERS: dict[str, Callable[[int, dict[str, Any]], AnnotatedText | None]] = {
    "doccano": _of_doccano,
    "Label Studio": _of_label_studio,
    "Label Studio (JSON-MIN)": _of_json_min,
    "Prodigy": _of_prodigy,
}


# -- predictions, for annotators to correct


class PreAnnotation(NamedTuple):
    """A text and what a model predicts for it.

    Attributes:
        text: The text.
        spans: A list of `(start, end, label)`, in characters.
        labels: The labels of the text as a whole.
        uncertainty: How uncertain the model is.
        text_b: The second text of a pair, or None.
    """

    text: str
    spans: Sequence[tuple[int, int, str]]
    labels: Sequence[str]
    uncertainty: float
    text_b: str | None = None


def doccano_line(item: PreAnnotation) -> str:
    """A line of the JSONL that doccano imports, for projects of sequence labeling or of text classification.

    doccano counts offsets in UTF-16 code units.

    >>> doccano_line(PreAnnotation("😀李雷", [(1, 3, "PER")], [], 0.5))
    '{"text": "😀李雷", "label": [[2, 4, "PER"]], "uncertainty": 0.5}'
    """
    spans: list[Any] = [
        [to_utf16(item.text, start), to_utf16(item.text, end), label] for start, end, label in item.spans
    ]
    return json_line({"text": item.text, "label": spans or list(item.labels), "uncertainty": item.uncertainty})


def label_studio_task(item: PreAnnotation, confidence: float) -> str:
    """A task that Label Studio imports, as a JSON object on one line; a file has an array of tasks.

    The predictions are those of the tags `<Text name="text" value="$text"/>` and, for spans, `<Labels name="label"
    toName="text">`, for labels `<Choices name="label" toName="text">`.

    Args:
        item: The `PreAnnotation`.
        confidence: The score of the prediction, by which Label Studio can sort: the lowest one is labeled first.
    """
    values: list[tuple[str, dict[str, Any]]] = [
        ("labels", {"start": start, "end": end, "text": item.text[start:end], "labels": [label]})
        for start, end, label in item.spans
    ]
    values += [("choices", {"choices": list(item.labels)})] if item.labels else []
    result = [
        {"id": str(number), "from_name": "label", "to_name": "text", "type": kind, "value": value}
        for number, (kind, value) in enumerate(values, 1)
    ]
    data = {"text": item.text} | ({} if item.text_b is None else {"text_b": item.text_b})
    return json_line({"data": data, "predictions": [{"model_version": "kcrf", "score": confidence, "result": result}]})

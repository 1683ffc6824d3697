"""Writes texts with the predictions of a model, as annotation tools import them for annotators to correct."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from kcrf.corpora.offsets import to_utf16
from kcrf.files import json_line


class PreAnnotation(NamedTuple):
    """A text and the prediction of a model: spans `(start, end, label)` in characters, or labels of the whole text."""

    text: str
    spans: Sequence[tuple[int, int, str]]
    labels: Sequence[str]
    uncertainty: float
    text_b: str | None = None


def doccano_line(item: PreAnnotation) -> str:
    """A line of the JSONL that doccano imports. doccano counts offsets in UTF-16 code units."""
    spans: list[Any] = [[to_utf16(item.text, a), to_utf16(item.text, b), label] for a, b, label in item.spans]
    return json_line({"text": item.text, "label": spans or list(item.labels), "uncertainty": item.uncertainty})


def label_studio_task(item: PreAnnotation, confidence: float) -> str:
    """A task that Label Studio imports, with the tags `<Text name="text" value="$text"/>` and `<Labels>` or `<Choices
    name="label" toName="text">`, as a JSON object on one line. A file has an array of tasks."""
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

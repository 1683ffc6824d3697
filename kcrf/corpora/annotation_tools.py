"""Writes texts with the predictions of a model, as annotation tools import them for annotators to correct."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from kcrf.corpora.offsets import to_utf16
from kcrf.files import json_line


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

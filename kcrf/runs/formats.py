"""Formats the files of a run that reports use, and reads them. Needs NumPy only.

Functions that read take a path. If the file is damaged, they raise a ValueError that names the file and the line.
"""

import csv
import io
import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kcrf.corpora import Example, Sentence, read_lines
from kcrf.corpora.classified import as_number, classified_line
from kcrf.files import json_line, parse_json
from kcrf.tags import TagScheme


def log_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """The content of `log.csv`: a line for each epoch."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def read_log(path: Path) -> list[dict[str, float]]:
    """The rows of a log, dicts of finite numbers. Other values are omitted."""
    try:
        rows = list(csv.DictReader(io.StringIO("\n".join(read_lines(path)))))
    except csv.Error as error:
        raise ValueError(f"{path}: needs a table of epochs. Received: {error}") from None
    for line, row in enumerate(rows, 2):
        if None in row or None in row.values():
            raise ValueError(f"{path}:{line}: needs a value for each of the columns. Received: {row}")
        if as_number(row.get("epoch", "")) is None:
            raise ValueError(f"{path}:{line}: needs the number of an epoch. Received: {row}")
    numbers = [{name: as_number(value) for name, value in row.items()} for row in rows]
    return [{name: value for name, value in row.items() if value is not None} for row in numbers]


def transitions_text(scheme: TagScheme, epochs: Any) -> str:
    """The content of `transitions.json`: labels, scheme, and the transitions after each epoch."""
    described = {"labels": list(scheme.labels), "scheme": scheme.get_config(), "epochs": epochs}
    return json.dumps(described, ensure_ascii=False)


def read_transitions(path: Path) -> tuple[list[str], np.ndarray | None, dict[str | None, list[tuple[int, np.ndarray]]]]:
    """Returns the labels, the allowed transitions, `(tags, tags)` bool or None, and a dict from the segmentation
    standard, or None for a model of one standard, to a list of `(epoch, matrix)`."""
    content = _read_json(path)
    labels = [str(label) for label in content["labels"]]
    scheme = TagScheme.from_config(content["scheme"]) if content.get("scheme") else None
    if scheme is not None and list(scheme.labels) != labels:
        raise ValueError(f"{path}:1: needs the labels of its scheme, {list(scheme.labels)}. Received: {labels}")
    matrices: dict[str | None, list[tuple[int, np.ndarray]]] = {}
    for epoch, rows, *standard in content["epochs"]:
        matrix = np.asarray(rows, "float64")
        matrices.setdefault(standard[0] if standard else None, []).append((int(epoch), matrix))
        if matrix.shape != (len(labels), len(labels)) or np.isnan(matrix).any():
            raise ValueError(
                f"{path}:1: needs a number for each pair of the {len(labels)} labels. "
                f"Received: shape={matrix.shape} in epoch {epoch}, {int(np.isnan(matrix).sum())} of them no numbers"
            )
    return labels, None if scheme is None else scheme.allowed_transitions, matrices


def predictions_text(sentences: Sequence[Sentence], predicted: Sequence[Any], facts: Any = None) -> str:
    """The content of `predictions.jsonl`: a line for each sentence, with its spans `(start, end[, label], probability)`
    and maybe a dict of facts. Words have the label ""."""
    rows = zip(sentences, predicted, facts or [{}] * len(sentences), strict=True)
    return "".join(f"{json_line({**_prediction(*pair), **more})}\n" for *pair, more in rows)


def _prediction(sentence: Sentence, predicted: Any) -> dict[str, Any]:
    standard = {} if sentence.standard is None else {"standard": sentence.standard}
    return {
        "text": sentence.text,
        "gold": [[start, end, *(label or [""])] for start, end, *label in sentence.spans],
        "found": [[start, end, *(label or [""]), round(p, 6)] for start, end, *label, p in predicted],
        **standard,
    }


def classifications_text(examples: Iterable[Example], predicted: Iterable[Any]) -> str:
    """The content of `predictions.jsonl` of a classifier: a line for each text."""
    lines = []
    for example, item in zip(examples, predicted, strict=True):
        is_number, several = item.probability is None, isinstance(item.label, tuple)
        gold = float(example.label) if is_number else example.labels if several else example.label
        values: dict[str, Any] = {"gold": gold, "found": item.label}
        if not is_number:
            values["probabilities"] = {name: round(p, 6) for name, p in item.probabilities.items()}
        lines.append(classified_line(*example.texts, **values))
    return "".join(f"{line}\n" for line in lines)


def read_predictions(path: Path) -> list[dict[str, Any]]:
    """Reads the predictions of a run, a list of dicts.

    For a tagger, a dict has `text`, `gold` with `(start, end, label)`, `found` with `(start, end, label, probability)`,
    the segmentation `standard` (or None), and maybe the `expected` number of spans. If the model of the run has learned
    the sentences, one for each `fold` has predicted them, and computed the numbers of `unseen` features and of all; for
    entities also the probabilities `likely` of the gold entities. For a classifier, a dict has `text`,
    `text_b` (or None), the labels `gold` and `found`, lists if a text can have several, and `probabilities` by label.
    For regression, `gold` and `found` are numbers, and `probabilities` is empty.
    """
    return [_read_prediction(path, line, text) for line, text in enumerate(read_lines(path), 1) if text.strip()]


def probabilities_of(rows: Iterable[Mapping[str, Any]]) -> list[tuple[float, bool]]:
    """The probability of each predicted span or label, and whether it is right. Numbers have none."""
    pairs = []
    for row in rows:
        if isinstance(row["found"], list) and "probabilities" in row:
            pairs += [(row["probabilities"][label], label in row["gold"]) for label in row["found"]]
        elif isinstance(row["found"], list):
            pairs += [(p, (*span,) in row["gold"]) for *span, p in row["found"]]
        elif row["probabilities"]:
            pairs.append((row["probabilities"][row["found"]], row["found"] == row["gold"]))
    return pairs


def probability_of(labels: Collection[str] | str, probabilities: Mapping[str, float]) -> float:
    """The probability of a label; or that several labels hold and no other does, if each is decided by itself."""
    if isinstance(labels, str):
        return probabilities[labels]
    return math.prod(p if label in labels else 1 - p for label, p in probabilities.items())


def _read_prediction(path: Path, line: int, text: str) -> dict[str, Any]:
    sentence = parse_json(path, text, line=line)
    if "probabilities" in sentence or not isinstance(sentence.get("gold", []), list):
        return _read_classification(path, line, sentence)
    try:
        length = len(sentence["text"])
        gold = [(int(start), int(end), str(label)) for start, end, label in sentence["gold"]]
        predicted = [(int(start), int(end), str(label), float(p)) for start, end, label, p in sentence["found"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path}:{line}: needs text, gold [[start, end, label], ...] and found [[start, end, label, probability], "
            f"...]. Received: {in_words(error)}"
        ) from None
    for span in gold + predicted:
        if not 0 <= span[0] < span[1] <= length:
            raise ValueError(f"{path}:{line}: needs 0 <= start < end <= {length}. Received: {span}")
    row = {"text": sentence["text"], "gold": gold, "found": predicted, "standard": sentence.get("standard")}
    return row | _facts(path, line, sentence, len(gold))


def _facts(path: Path, line: int, row: dict[str, Any], gold: int) -> dict[str, Any]:
    """The numbers of a sentence that were computed by a model which had not learned it."""
    facts = {name: row[name] for name in ("expected", "unseen", "likely", "fold") if name in row}
    shapes = {"expected": (), "unseen": (2,), "likely": (gold,), "fold": ()}
    try:
        arrays = {name: np.asarray(value, float).reshape(shapes[name]) for name, value in facts.items()}
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{path}:{line}: needs a number for expected and fold, two for unseen, {gold} for likely. Received: {error}"
        ) from None
    return {name: numbers.tolist() for name, numbers in arrays.items()}


def _read_classification(path: Path, line: int, item: Any) -> dict[str, Any]:
    texts, gold, predicted = [item.get("text"), item.get("text_b", "")], item.get("gold"), item.get("found")
    probabilities = item.get("probabilities", {})
    is_number = isinstance(gold, (int, float)) and isinstance(predicted, (int, float))
    labels = [*gold, *predicted] if isinstance(gold, list) and isinstance(predicted, list) else [gold, predicted]
    names = probabilities if isinstance(probabilities, dict) else {}
    is_label = bool(names) and all(isinstance(label, str) and label in names for label in labels)
    values = probabilities.values() if is_label else ()
    in_range = is_number or is_label and all(isinstance(p, (int, float)) and 0 <= p <= 1 for p in values)
    if not all(isinstance(text, str) for text in texts) or not in_range:
        raise ValueError(
            f"{path}:{line}: needs text, gold, found, and the probabilities of all labels or gold and found as "
            f"numbers. Received: {str(item)[:80]}"
        )
    row = {"text": texts[0], "text_b": item.get("text_b"), "gold": gold, "found": predicted}
    return {**row, "probabilities": probabilities}


def read_scores(path: Path) -> dict[str, dict[str, Any]]:
    """The content of `scores.json`: for each part, "valid" and "test", a dict of scores."""
    content = _read_json(path)
    if not all(isinstance(scores, dict) for scores in content.values()):
        raise ValueError(f"{path}:1: needs an object of scores for each part. Received: {str(content)[:80]}")
    return content


def in_words(error: Exception) -> str:
    """The message of an exception. A `KeyError` gets a sentence instead of the bare key."""
    return f"no {error}" if isinstance(error, KeyError) else str(error)


def _read_json(path: Path) -> Any:
    return parse_json(path, "\n".join(read_lines(path)), line=1)

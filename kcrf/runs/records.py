"""What a run folder tells of its training, read for the report and checked. Needs NumPy only."""

import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kcrf.corpora import read_lines
from kcrf.metrics import advice
from kcrf.runs.folder import RunFolder
from kcrf.tags import TagScheme

__all__ = ["RunRecord", "read_run"]


@dataclass(frozen=True)
class RunRecord:
    """A training run. What its folder does not have is None.

    Attributes:
        path: The folder.
        settings: A dict.
        log: A dict per epoch, numbers by column name.
        scores: A dict of parts ("valid", "test"), each a dict of figures.
        labels: The labels of the tags; None without transitions, as all that follows up to `transitions`.
        allowed: `(tags, tags)` bool, which transitions the scheme allows, or None.
        transitions: List of `(epoch, matrix)`.
        predictions: A dict per held-out sentence: `text`, `gold`, `found`; see `kcrf.reports.mistakes`.
    """

    path: Path
    settings: dict
    log: list | None
    scores: dict | None
    labels: list | None
    allowed: np.ndarray | None
    transitions: list | None
    predictions: list | None

    @property
    def part(self):
        """The part that was scored last and that the predictions are of, "test" or "valid"; None before."""
        return next((part for part in ("test", "valid") if part in (self.scores or {})), None)

    @property
    def advice(self):
        """What a `kcrf.monitor.CRFMonitor` says of the last epoch, or None where there was none."""
        last = self.log[-1] if self.log else {}
        if not {"transition_size", "emission_gap", "lr_multiplier", "suggested_lr_multiplier"} <= last.keys():
            return None
        if "illegal_above_legal" in last and self.allowed is not None:
            last = {**last, "illegal": int(np.sum(~self.allowed))}
        return f"after epoch {last['epoch']:.0f}: {advice(last)}"


def read_run(path):
    """Reads a run folder.

    Raises:
        FileNotFoundError: It is no run folder: it has no `config.json`.
        ValueError: A file is damaged, or of a newer version; names file and line.
    """
    folder = RunFolder(path)
    settings = folder.read_config()["settings"]
    labels, allowed, transitions = _read(folder.file("transitions.json"), _transitions) or (None, None, None)
    return RunRecord(
        folder.path,
        settings,
        _read(folder.file("log.csv"), _log),
        _read(folder.file("scores.json"), _scores),
        labels,
        allowed,
        transitions,
        _read(folder.file("predictions.jsonl"), _predictions),
    )


def _read(path, read):
    """What `read` makes of a file; None where there is none. Whatever it stumbles over becomes an error of the file."""
    if not path.is_file():
        return None
    try:
        return read(path)
    except (AttributeError, KeyError, IndexError, TypeError) as error:
        raise ValueError(f"{path}:1: needs what `kcrf train` writes. Received: {_said(error)}") from None


def _said(error):
    return f"no {error}" if isinstance(error, KeyError) else str(error)


def _json(path):
    return _parsed(path, 1, "\n".join(read_lines(path)))


def _parsed(path, line, text):
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}:{line + error.lineno - 1}: needs JSON. Received: {error.msg}") from None


def _log(path):
    """The rows with all their numbers; what is no number is left out."""
    rows = list(csv.DictReader(io.StringIO("\n".join(read_lines(path)))))
    for line, row in enumerate(rows, 2):
        if None in row or None in row.values():
            raise ValueError(f"{path}:{line}: needs a value for each of the columns. Received: {row}")
    rows = [{name: _number(value) for name, value in row.items()} for row in rows]
    for line, row in enumerate(rows, 2):
        if row.get("epoch") is None:
            raise ValueError(f"{path}:{line}: needs the number of an epoch. Received: {row}")
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


def _number(text):
    try:
        value = float(text)
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def _scores(path):
    scores = _json(path)
    return {part: dict(figures) for part, figures in scores.items()}


def _transitions(path):
    content = _json(path)
    labels = [str(label) for label in content["labels"]]
    scheme = TagScheme.from_config(content["scheme"]) if content.get("scheme") else None
    if scheme is not None and list(scheme.labels) != labels:
        raise ValueError(f"{path}:1: needs the labels of its scheme, {list(scheme.labels)}. Received: {labels}")
    matrices = [(int(epoch), np.asarray(matrix, "float64")) for epoch, matrix in content["epochs"]]
    for epoch, matrix in matrices:
        if matrix.shape != (len(labels), len(labels)) or np.isnan(matrix).any():
            raise ValueError(
                f"{path}:1: needs a number for each pair of the {len(labels)} labels. "
                f"Received: shape={matrix.shape} in epoch {epoch}, {int(np.isnan(matrix).sum())} of them no numbers"
            )
    return labels, scheme and scheme.allowed_transitions, matrices


def _predictions(path):
    return [_sentence(path, line, text) for line, text in enumerate(read_lines(path), 1) if text.strip()]


def _sentence(path, line, text):
    sentence = _parsed(path, line, text)
    try:
        length = len(sentence["text"])
        gold = [(int(start), int(end), str(label)) for start, end, label in sentence["gold"]]
        found = [(int(s), int(e), str(label), float(sure)) for s, e, label, sure in sentence["found"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path}:{line}: needs text, gold [[start, end, label], ...] and found [[start, end, label, confidence], "
            f"...]. Received: {_said(error)}"
        ) from None
    for span in gold + found:
        if not 0 <= span[0] < span[1] <= length:
            raise ValueError(f"{path}:{line}: needs 0 <= start < end <= {length}. Received: {span}")
    return {"text": sentence["text"], "gold": gold, "found": found}

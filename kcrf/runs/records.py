"""Reads a run folder for reports. Needs NumPy only."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from kcrf.metrics import advice
from kcrf.metrics.transitions import is_forbidden
from kcrf.runs.folder import RunFolder
from kcrf.runs.formats import in_words, read_log, read_predictions, read_scores, read_transitions
from kcrf.runs.names import LOG, PREDICTIONS, SCORES, TRANSITIONS


@dataclass(frozen=True)
class RunRecord:
    """A training run. An attribute whose file is missing is None."""

    path: Path
    settings: dict[str, Any]  # the values that ran
    log: list[dict[str, float]] | None  # a dict for each epoch
    scores: dict[str, dict[str, Any]] | None  # by part, "valid" or "test"
    labels: list[str] | None  # of the tags. None without transitions; so are `allowed` and `transitions`
    allowed: np.ndarray | None  # `(tags, tags)` bool
    transitions: dict[str | None, list[tuple[int, np.ndarray]]] | None  # `(epoch, matrix)` by standard, or of None
    predictions: list[dict[str, Any]] | None  # as `kcrf.runs.formats.read_predictions` returns them
    chosen: tuple[str, ...] = ()  # the names of the settings that the data decided
    said: Mapping[str, Any] = field(default_factory=dict)  # the settings of the user
    sources: Mapping[str, Any] = field(default_factory=dict)  # of the data, such as {"train": FILE}; empty for a script
    sha256: Mapping[str, str] = field(default_factory=dict)  # the hashes of the sets

    @property
    def part(self) -> str | None:
        """The part of the predictions, "test" or "valid": the one that was scored last. None if none was scored."""
        return next((part for part in ("test", "valid") if part in (self.scores or {})), None)

    @property
    def metric(self) -> str:
        """The key of the score by which the best epoch was chosen."""
        return self.settings.get("metric") or "f"

    @property
    def score(self) -> float | None:
        """The score `metric` of `part`, or None."""
        return self.scores[self.part].get(self.metric) if self.scores and self.part else None

    @property
    def advice(self) -> str | None:
        """The advice of a `kcrf.monitor.CRFMonitor` after the last epoch, or None if there was no monitor."""
        return last_advice(self.log or [], self.allowed, (self.transitions or {}).get(None, []))


def last_advice(log: Sequence[Mapping[str, Any]], allowed: np.ndarray | None, transitions: Sequence[Any]) -> str | None:
    """The advice of a `kcrf.monitor.CRFMonitor` after the last epoch of a log."""
    last = log[-1] if log else {}
    if not {"transition_size", "emission_gap", "lr_multiplier", "suggested_lr_multiplier"} <= last.keys():
        return None
    if "illegal_above_legal" in last and allowed is not None and len(transitions):
        last = {**last, "illegal": int(np.sum(~allowed & ~is_forbidden(transitions[-1][1])))}
    return f"after epoch {last['epoch']:.0f}: {advice({**last, **_progress(log)})}"


def _progress(log: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The best validation score of a log, and whether it occurs in the last epoch or the last tenth of many epochs."""
    score = next((name for name in log[-1] if name.startswith("valid_")), None)
    if score is None:
        return {}
    scores = [record[score] for record in log]
    improves = len(log) - scores.index(max(scores)) <= max(1, len(log) // 10)
    return {"best_score": max(scores), "improves": improves if len(log) > 1 else None}


def read_run(path: str | PathLike[str]) -> RunRecord:
    """Reads a run folder."""
    folder = RunFolder(path)
    stored = folder.read_config()
    data = stored.data or {}
    labels, allowed, transitions = _read(folder.file(TRANSITIONS), read_transitions) or (None, None, None)
    return RunRecord(
        folder.path,
        stored.config.flat(),
        _read(folder.file(LOG), read_log),
        _read(folder.file(SCORES), read_scores),
        labels,
        allowed,
        transitions,
        _read(folder.file(PREDICTIONS), read_predictions),
        tuple(stored.chosen()),
        stored.user.said(),
        data.get("sources") or {},
        data.get("sha256") or {},
    )


def _read(path: Path, read: Callable[[Path], Any]) -> Any:
    """The result of `read` for a file, or None if it is missing. Turns errors about damaged files into a ValueError."""
    if not path.is_file():
        return None
    try:
        return read(path)
    except (AttributeError, KeyError, IndexError, TypeError) as error:
        raise ValueError(f"{path}:1: needs what `kcrf train` writes. Received: {in_words(error)}") from None

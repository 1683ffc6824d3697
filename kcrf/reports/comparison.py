"""Which runs can be compared, whether their scores differ by more than chance, and which differ only in the seed."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kcrf.metrics.bootstrap import bootstrap_difference, f1_of_counts, span_counts
from kcrf.reports.tables import SETS
from kcrf.runs import RunRecord

IGNORED = ("seed", "mean", "deviation", "temperature")  # but for the seed, they follow from the data and the weights


def why_not_comparable(runs: Sequence[RunRecord], part: str) -> str | None:
    """The reason why the scores of a set cannot be compared, a sentence; `None` if they can."""
    runs = [run for run in runs if part in (run.scores or {})]
    tasks = sorted({str(run.settings.get("task")) for run in runs})
    if len(tasks) > 1:
        return f"the runs have different tasks ({', '.join(tasks)})"
    sizes = {_gold_count((run.scores or {})[part]) for run in runs}
    predicted = [run for run in runs if run.part == part and run.predictions is not None]
    texts = set(map(_gold, predicted))
    if len(sizes) > 1 or len(texts) > 1 or len(predicted) < len(runs) and _hashes_differ(runs, part):
        return f"the runs have different texts in the {SETS[part]}"
    return None


def _hashes_differ(runs: Sequence[RunRecord], part: str) -> bool:
    """Whether the hashes of a set differ. They contain the names of standards."""
    hashes = {run.sha256[part] for run in runs if part in run.sha256}
    return len(hashes) > 1 and len({str(run.settings.get("standards")) for run in runs}) == 1


def _gold_count(scores: Mapping[str, Any]) -> int | None:
    return next((scores[key] for key in ("true_words", "true_entities", "examples", "tokens") if key in scores), None)


def _gold(run: RunRecord) -> int:
    return hash(tuple((row["text"], row.get("text_b"), repr(row["gold"])) for row in run.predictions or ()))


def differences_from_the_best(
    runs: Mapping[str, RunRecord], part: str
) -> list[tuple[str, str, int, tuple[float, float, float]]]:
    """Compares the run with the largest F1, or accuracy, with each of the others, by the texts of their predictions."""
    counts = {
        name: _counts(run.predictions)
        for name, run in runs.items()
        if run.part == part and run.predictions and not isinstance(run.predictions[0]["gold"], (int, float))
    }
    if len(counts) < 2:
        return []
    if len({own.shape for own in counts.values()}) > 1:  # of one standard, and of several
        return []
    best = max(counts, key=lambda name: f1_of_counts(counts[name].sum(axis=0)).mean())
    others = {name: own for name, own in counts.items() if name != best}
    return [(best, name, len(own), bootstrap_difference(counts[best], own)) for name, own in others.items()]


def _counts(predictions: Sequence[dict[str, Any]]) -> np.ndarray:
    """The `span_counts` of sentences. A label of a text counts as a span of it: F1 is the accuracy then.

    With several segmentation standards, the counts are `(sentences, standards, 3)`.
    """
    if isinstance(predictions[0]["gold"], str):
        return np.array([(row["gold"] == row["found"], 1, 1) for row in predictions], np.int64)
    counts = span_counts(*zip(*((row["gold"], row["found"]) for row in predictions)))
    standards, of_row = np.unique([row.get("standard") or "" for row in predictions], return_inverse=True)
    if len(standards) == 1:
        return counts
    is_of = np.eye(len(standards), dtype=np.int64)[of_row]  # (sentences, standards)
    return is_of[:, :, None] * counts[:, None]


def groups_by_settings(runs: Mapping[str, RunRecord]) -> dict[str, list[RunRecord]]:
    """The runs with equal settings but for the seed: a dict from the settings that differ to a list of runs.

    Settings that a run chose itself, such as the number of epochs by the size of its data, do not count.
    """
    groups: dict[str, tuple[dict[str, Any], list[RunRecord]]] = {}
    for run in runs.values():
        ignored = {*IGNORED, *(["epochs"] if run.settings.get("steps") else [])}
        settings = {name: value for name, value in run.settings.items() if name not in ignored}
        settings |= {name: "auto" for name in run.chosen if name in settings} | {"train": run.sources.get("train")}
        groups.setdefault(json.dumps(settings, sort_keys=True), (settings, []))[1].append(run)
    every = [settings for settings, _ in groups.values()]
    names = [name for name in every[0] if any(settings.get(name) != every[0][name] for settings in every)]
    return {
        ", ".join(f"{name}={settings.get(name)}" for name in names) or "all runs": group
        for settings, group in groups.values()
    }


def differ_in_seed(runs: Mapping[str, RunRecord]) -> bool:
    """Whether there are several runs and their settings differ only in the seed, or as a consequence of the data."""
    return len(runs) > 1 and len(groups_by_settings(runs)) == 1

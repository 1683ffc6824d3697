"""Several runs of `kcrf train` that differ in their seed alone: their scores side by side, mean and deviation."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from kcrf.files import sha256_of

ADVICE = (
    "more --steps, more --warmup or a lower --learning-rate make that rarer; "
    "with a BERT also --bias-correction and --skip-top-layers 1"
)


def with_hashes(sources: dict[str, Any], settings: Any) -> dict[str, Any]:
    """The sources with a hash of each file and folder: a run of one that has changed since is one of other data."""
    names = {}
    for name in ("train", "valid", "test", "unlabeled"):
        files = sources.get(name)
        by_standard = files if isinstance(files, dict) else {"": files}
        names |= {f"{name} {standard}".strip(): path for standard, path in by_standard.items()}
    of_model = () if settings.continues else ("vectors", "bert")  # else the run that is extended has them
    names |= {name: getattr(settings, name) for name in (*of_model, "synonyms", "synonym_vectors", "teacher", "extend")}
    return {**sources, "sha256": {name: sha256_of(Path(path)) for name, path in names.items() if path is not None}}


def check_unchanged(sources: dict[str, Any], settings: Any) -> None:
    """Raises ValueError if files have changed since their hashes were made: each run reads its data anew."""
    hashes = with_hashes(sources, settings)["sha256"]
    changed = [name for name, sha256 in sources["sha256"].items() if hashes.get(name) != sha256]
    if changed:
        raise ValueError(
            f"--seeds needs the same files for all seeds. Received: files that changed after the command began "
            f"({', '.join(changed)}); --overwrite trains all seeds anew"
        )


def plan_seeds(
    out: str, settings: Any, sources: dict[str, Any], count: int, overwrite: bool
) -> list[tuple[Any, Path, str]]:
    """Plans the run of each seed."""
    if count < 2:
        raise ValueError(f"--seeds must be at least 2. Received: {count}")
    if (Path(out) / "config.json").is_file():
        raise FileExistsError(f"{out}: needs a folder for several run folders. Received: a run folder")
    runs = [replace(settings, seed=settings.seed + number) for number in range(count)]
    return [(one, Path(out) / f"seed-{one.seed}", _mode(out, one, sources, overwrite)) for one in runs]


def _mode(out: str, settings: Any, sources: dict[str, Any], overwrite: bool) -> str:
    from kcrf.runs import RunFolder

    folder = RunFolder(Path(out) / f"seed-{settings.seed}")
    with suppress(FileNotFoundError):
        if _is_run_of(RunFolder.interrupted(folder.path), settings, sources):
            return "resume"
    if not folder.file("config.json").is_file():
        return "train"
    if folder.file("scores.json").is_file() and _is_run_of(folder, settings, sources):
        return "keep"
    if not overwrite:
        raise FileExistsError(
            f"{folder.path}: needs --overwrite to replace a run of other settings or data. Received: no --overwrite"
        )
    return "train"


def _is_run_of(folder: Any, settings: Any, sources: dict[str, Any]) -> bool:
    """Whether a run has these settings of its user, and these data."""
    stored = folder.read_config()
    return stored.user.values() == settings.values() and (stored.data or {}).get("sources") == sources


def print_seeds(out: str, scores: dict[int, Any], metric: str | None = None, diverged: Sequence[int] = ()) -> None:
    """Prints the scores of the last part of each run, their mean and standard deviation, and which runs failed."""
    from rich.console import Console

    from kcrf.reports import score_table
    from kcrf.reports.tables import TITLES, columns_of

    last: Any = {seed: parts.get("test", parts["valid"]) for seed, parts in scores.items()}
    part = "test" if "test" in next(iter(scores.values())) else "valid"
    keys = [key for key in columns_of(last) if any(row.get(key) is not None for row in last.values())]
    standards = next(iter(last.values())).get("standards", {})
    last = {seed: {**row, **{name: row["standards"][name]["f"] for name in standards}} for seed, row in last.items()}
    titles = ["F1, mean", *(f"F1 of {name}" for name in standards)] if standards else [TITLES[key] for key in keys]
    keys = ["f", *standards] if standards else keys
    rows = [[f"seed {seed}", *map(row.get, keys)] for seed, row in last.items()]
    for name, of in (("mean", mean), ("deviation", stdev)):
        columns = [[row[key] for row in last.values() if row.get(key) is not None] for key in keys]
        rows.append([name, *(float(of(column)) if len(column) > 1 else None for column in columns)])
    Console().print(score_table(f"{out}, {part} part", ["", *titles], rows))
    failed = {seed: f"{seed}" for seed in failed_runs(scores, metric)}
    failed |= {seed: f"{seed} (loss not finite)" for seed in diverged}
    if failed:
        names = ", ".join(failed[seed] for seed in sorted(failed))
        print(f"failed: {len(failed)} of {len(scores) + len(diverged)} runs, seed {names}: {ADVICE}")


def failed_runs(scores: dict[int, Any], metric: str | None = None) -> list[int]:
    """The seeds of the runs that learned nothing: not better than one label for all texts, no F1, no correlation.

    >>> labels = {"no": {"true": 3}, "yes": {"true": 1}}
    >>> failed_runs({0: {"valid": {"accuracy": 0.75, "labels": labels}}, 1: {"valid": {"f": 0.5}}})
    [0]
    """
    return [seed for seed, parts in scores.items() if _learned_nothing(parts["valid"], metric or "accuracy")]


def _learned_nothing(scores: dict[str, Any], metric: str) -> bool:
    from kcrf.metrics import classification_scores

    if "labels" not in scores:
        return (next((scores[key] for key in (metric, "pearson", "f") if key in scores), None) or 0.0) <= 0
    counts = {label: figures["true"] for label, figures in scores["labels"].items()}
    gold = [label for label, count in counts.items() for _ in range(count)]
    constants = (classification_scores(gold, [label] * len(gold), list(counts)) for label in counts)
    return scores[metric] <= max(constant[metric] for constant in constants)

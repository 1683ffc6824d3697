"""Measures the runs of a claim that are not stored yet. Several processes may share the work."""

import json
import os
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from experiments.store import about_now
from kcrf.progress_bars import bar, print_note
from kcrf.runs.lock import locked


@dataclass(frozen=True)
class Context:
    """Where a run finds its data, and a folder for its files.

    Attributes:
        data: The folder of the corpora.
        folder: The folder of the run, removed when its result is stored.
        berts: The folders of pretrained BERTs by name.
        most: How many sentences or texts of each part are used at most, to try a run. Defaults to all.
    """

    data: Path
    folder: Path
    berts: dict[str, Any]
    most: int | None = None


def measure_claim(claim, results, context, chosen=lambda run: True, most=None, minutes=None):
    """Measures those runs of a claim that `chosen` wants, as `measure_runs` does."""
    return measure_runs(claim, [run for run in claim.runs() if chosen(run)], results, context, most, minutes)


def measure_runs(claim, runs, results, context, most=None, minutes=None):
    """Measures the runs that are not stored, and stores each one as soon as it is complete.

    A run that another claim has measured with the same settings and seed is copied. A run belongs to the process that
    holds the lock of its folder; the lock ends with the process. Other processes skip the run. An interrupted run
    resumes after its last complete epoch.

    Args:
        claim: The `Claim`.
        runs: Runs of it.
        results: Its `Results`.
        context: The `Context`; each run gets a folder of its own in its folder.
        most: How many runs are measured at most. Defaults to all.
        minutes: After how many minutes no further run begins. Defaults to never.

    Returns:
        The keys of the runs that this process measured.
    """
    began, done = time.monotonic(), []
    with bar() as progress:
        task = progress.add_task(claim.name, total=len(runs))
        for run in runs:
            late = minutes is not None and time.monotonic() - began > 60 * minutes
            if late or len(done) == most:
                break
            progress.update(task, description=f"{claim.name}: {run.key}")
            if not results.has(run) and _measure(claim, run, results, context):
                done.append(run.key)
            progress.advance(task)
    return done


def _measure(claim, run, results, context):
    """Measures and stores one run; False if another process does so or has done so."""
    folder = context.folder / claim.name / run.key.replace(", ", "-").replace(" ", "-").replace("/", "-")
    try:
        with locked(folder.with_name(f"{folder.name}.claimed")):
            if results.has(run):  # another process stored it since the caller looked
                return False
            record = results.of_other_claim(run) or _record(claim, run, replace(context, folder=folder))
            results.add(run, record)
            shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        return False
    numbers = json.dumps(_numbers(record["measures"]))
    seconds = record["processor_seconds"]
    print_note(f"{claim.name}: {run.key}: {numbers}, {'resumed' if seconds is None else f'{seconds:.0f} s'}")
    return True


def _record(claim, run, context):
    """The measures of a run, with their cost and origin. The cost of a run that was interrupted is None."""
    resumed, worked = context.folder.exists(), time.process_time()
    measures = claim.measure(run, context)
    seconds = None if resumed else round(time.process_time() - worked, 1)
    backend = os.environ.get("KERAS_BACKEND", "tensorflow")
    return {"measures": measures, "processor_seconds": seconds, "backend": backend, **about_now()}


def _numbers(measures):
    return {name: value for name, value in measures.items() if isinstance(value, (int, float))}

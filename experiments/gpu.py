"""Measures the runs of 12 layers on a GPU: `python -m experiments gpu --data FOLDER --minutes 8`.

Several processes share the GPU and the work, the most decisive claims first. Each result is stored as soon as its run
ends, and a repeated command resumes. Needs PyTorch or JAX, not TensorFlow: `--needs` lists the packages and the data.
`--steps 2` tries each kind of run with two steps, on any machine, and stores its results elsewhere.
"""

import argparse
import multiprocessing
import os
import time
import tomllib
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from experiments.claim import load_claims
from experiments.data import BERTS, CLASSIFIED, FOLDERS, TAGGED
from experiments.runner import Context, measure_runs
from experiments.store import MEASURED, ROOT, Results

CLAIMS = ("c03b", "c01", "c04", "c05", "c07", "c10", "o6", "o5")  # the most decisive first


def main(arguments=None):
    """Runs the command line; returns the exit status."""
    options = _parser().parse_args(arguments)
    if options.needs:
        print("\n".join([*_packages(), *_files(options.data)]))
        return 0
    _set_environment()
    began = time.time()
    workers = [
        multiprocessing.get_context("spawn").Process(target=_work, args=(options, began))
        for _ in range(options.processes)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return max(abs(worker.exitcode) for worker in workers)


def _set_environment():
    """The settings that the processes inherit."""
    backend = os.environ.setdefault("KERAS_BACKEND", "torch")
    if backend not in ("torch", "jax"):
        raise SystemExit(f"KERAS_BACKEND must be torch or jax. Received: {backend}")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX would take the whole memory for one process


def _work(options, began):
    """Measures what no other process measures, until the time is over."""
    claims = load_claims()
    berts = {name: options.data / "checkpoints" / folder for name, folder in BERTS.items()}
    results = Path("runs/experiments_dry") if options.steps else options.results
    for name in CLAIMS:
        runs = deep_runs(claims[name], options.steps)
        most = options.steps and options.steps * max(run.settings.get("batch_size", 16) for run in runs)
        context = Context(options.data, options.out, berts, most)
        left = options.minutes - (time.time() - began) / 60
        if left > 0:
            measure_runs(claims[name], runs, Results.of(claims[name], results), context, options.most, left)


def deep_runs(claim, steps=None):
    """The runs of 12 layers of a claim; with `steps`, one of each kind, of one epoch."""
    runs = [run for run in claim.runs() if run.settings.get("bert") == "deep"]
    return [replace(run, settings={**run.settings, "epochs": 1}) for run in runs if run.seed == 0] if steps else runs


def _packages():
    """The installed versions of the packages that a run imports, as pip takes them: PyTorch with CUDA, too."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [requirement.partition(">=")[0] for requirement in project["dependencies"]]
    return ["# packages", *(f"{name}=={version(name).partition('+')[0]}" for name in [*names, "torch"])]


def _files(data):
    """The files and folders that the runs read."""
    claims = load_claims()
    corpora = {run.settings["corpus"] for name in CLAIMS for run in deep_runs(claims[name])}
    files = {path for corpus in corpora if corpus in TAGGED for path in TAGGED[corpus][1] if path}
    for corpus in corpora & CLASSIFIED.keys():
        names, scored, *_ = CLASSIFIED[corpus]
        files |= {f"classification/{FOLDERS[corpus]}/{name}" for name in (*names, scored)}
    size = sum((data / path).stat().st_size for path in files if (data / path).exists())
    folder = f"checkpoints/{BERTS['deep']}"
    return [f"# files of {data}: {size / 1e6:.0f} MB, and the checkpoint", *sorted(files), folder]


def _parser():
    parser = argparse.ArgumentParser(prog="python -m experiments gpu", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the folder of the corpora")
    parser.add_argument("--minutes", type=float, default=8, metavar="N", help="begin no run after N minutes [8]")
    parser.add_argument("--processes", type=int, default=8, metavar="N", help="how many share the GPU [8]")
    parser.add_argument("--steps", type=int, metavar="N", help="try each kind of run with N steps")
    parser.add_argument("--most", type=int, metavar="N", help="measure at most N runs of a claim in each process")
    parser.add_argument("--needs", action="store_true", help="list the packages and the data that the runs need")
    parser.add_argument("--out", type=Path, default=Path("runs/experiments"), help="files of unfinished runs")
    parser.add_argument("--results", type=Path, default=MEASURED, metavar="FOLDER", help="where results are stored")
    return parser

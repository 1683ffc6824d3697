"""Shared by the experiments: results stored by key, and training runs that resume after an interruption."""

import json
import os
import time
from pathlib import Path

# What `kcrf train` from scratch did by default in version 0.1.0, for data of every size.
DEFAULTS_0_1 = {
    "constraints": False,
    "crf_lr_multiplier": 10.0,
    "learning_rate": 1e-3,
    "warmup": 0.05,
    "epochs": 5,
    "batch_size": 64,
    "width": 256,
    "depth": 3,
    "dropout": 0.4,
    "ngrams": False,  # there were none, and no averages with linear models
    "linear_weight": 0.0,
    "augment": 0,
}


def kept(path, key, measure):
    """The result under a key of a JSON file, measured and added if it is not there yet.

    The file is read again before it is written: another process may have added results in the meantime.
    """
    if key not in _read(path):
        result = measure()
        path.write_text(json.dumps({**_read(path), key: result}, indent=1), encoding="utf-8")
    return _read(path)[key]


def _read(path):
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def run_folder(out, key):
    """The folder of the training run whose result has this key."""
    return Path(out) / key.replace(", ", "-").replace(" ", "-")


def trained(settings, parts, out, **more):
    """A tagger, its scores, and the time of training: seconds are None for a run that had been stopped."""
    from kcrf.runs import RunFolder
    from kcrf.training import resume_tagger, train_tagger

    began, worked = time.perf_counter(), time.process_time()
    goes_on = RunFolder(out).is_unfinished()
    if goes_on:
        tagger, scores = resume_tagger(out, *parts, **more)
    else:  # a complete run in the folder is one whose result was not stored
        tagger, scores = train_tagger(settings, *parts, out=out, overwrite=True, **more)
    taken = {
        "seconds": None if goes_on else round(time.perf_counter() - began),
        "processor_seconds": None if goes_on else round(time.process_time() - worked),
        "backend": os.environ.get("KERAS_BACKEND", "tensorflow"),
    }
    return tagger, scores, taken

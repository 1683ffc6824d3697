"""F1 of linear models of few sentences by how they are trained, on sentences that chose nothing.

    python experiments/linear_solvers.py --data FOLDER [--only "weibo, 100" ...]

FOLDER is that of benchmarks/linear.py. Models are trained on the first sentences of the training set, with as many of
the validation set for the epoch and the temperature, and scored on the next 1,500 of the validation set ("dev"), by
which the defaults were chosen, and on the test set. Results are kept in experiments/linear_solvers.json. The rows of
AdaGrad were measured before its rates for entities were raised.
"""

import argparse
import json
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from results import kept

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from linear import read_parts

RESULTS = Path(__file__).with_suffix(".json")
CELLS = (("people_daily", 100), ("weibo", 100), ("gsd", 100), ("wnut17", 300))
ROWS = {
    "adagrad": {"solver": "adagrad"},
    "adagrad, no L1": {"solver": "adagrad", "l1": 0.0},
    "lbfgs 0 0.1": {"l1": 0.0, "l2": 0.1},
    "lbfgs 0.03 0.03": {"l1": 0.03, "l2": 0.03},
    "lbfgs 0.1 0.01": {"l1": 0.1, "l2": 0.01},
    "lbfgs 0.3 0.01": {"l1": 0.3, "l2": 0.01},
    "lbfgs 1 0.01": {"l1": 1.0, "l2": 0.01},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--only", nargs="+", help='cells such as "weibo, 100"')
    options = parser.parse_args()
    for corpus, size in CELLS:
        if options.only is None or f"{corpus}, {size}" in options.only:
            parts = read_parts(options.data, corpus)
            for row, settings in ROWS.items():
                key = f"{corpus}, {size}, {row}"
                print(key, json.dumps(kept(RESULTS, key, partial(measure, corpus, size, settings, parts))), flush=True)


def measure(corpus, size, settings, parts):
    """F1 on dev and on the test set, and processor seconds of training."""
    from kcrf.runs import Settings
    from kcrf.training import train_tagger

    train, valid, test = parts
    task = "cws" if corpus in ("pku", "gsd") else "ner"
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(task=task, encoder="linear", augment=0, **settings)
        tagger, _ = train_tagger(settings, train[:size], valid[:size], out=Path(folder) / "run")
        seconds = time.process_time() - began
        scores = {
            name: tagger.scores(as_sentences(part))["f"]
            for name, part in (("dev", valid[size:][:1500]), ("test", test))
        }
    return {**{name: round(score or 0.0, 4) for name, score in scores.items()}, "processor_seconds": round(seconds, 1)}


def as_sentences(items):
    from kcrf.tasks.task import as_sentence

    return [as_sentence(item) for item in items]


if __name__ == "__main__":
    main()

"""Validation scores of text classification on GLUE tasks with small training sets, by seed.

    python experiments/glue.py rte --data classification/RTE --bert all-MiniLM-L6-v2
    python experiments/glue.py mrpc --data classification/MRPC --bert all-MiniLM-L6-v2
    python experiments/glue.py cola --data classification/CoLA --bert all-MiniLM-L6-v2
    python experiments/glue.py stsb --data classification/STS-B --bert all-MiniLM-L6-v2

Every run is `kcrf train --task classify --bert FOLDER` with its defaults, except for the metric of the task,
the row in ROWS and the seed. As usual for GLUE validation scores, the epoch is chosen on the set that is scored. For
MRPC, this is the labeled test set. `--only NAME` runs one row, `--limit N` trains on a sample, and `--from RUN` starts
from the BERT of another run: `rte ... --from runs/glue/stsb/defaults-seed-0` after a run of STS-B. Results are stored
in experiments/glue_<task>.json; a stopped experiment resumes after the last complete epoch.
"""

import argparse
import json
from functools import partial
from pathlib import Path

from data import CLASSIFIED, classified_parts
from results import kept, run_folder, trained

HERE = Path(__file__).parent
ROWS = {
    "defaults": {},
    "1,000 steps": {"steps": 1000},
    "pooler": {"pool": "pooler"},
    "mean": {"pool": "mean"},
    "one rate": {"head_lr_multiplier": 1.0},
    "as Trainer": {"pool": "pooler", "head_lr_multiplier": 1.0, "weight_decay": 0.0},
    "top layer anew": {"skip_top_layers": 1},
    "layers decayed": {"layerwise_decay": 0.8, "learning_rate": 3e-4},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=[task for task in CLASSIFIED if task != "chnsenticorp"])
    parser.add_argument("--data", required=True, help="the folder of the task")
    encoder = parser.add_mutually_exclusive_group(required=True)
    encoder.add_argument("--bert", help="the folder of a BERT")
    encoder.add_argument("--from", dest="from_run", metavar="RUN", type=Path, help="a run of another task: its BERT")
    parser.add_argument("--only", choices=ROWS, default="defaults", help="the row")
    parser.add_argument("--limit", type=int, help="train on this many samples")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", default="runs/glue")
    options = parser.parse_args()
    for seed in options.seeds:
        before = f", from {options.from_run.parent.name}" if options.from_run else ""
        sample = f", {options.limit} samples" if options.limit else ""
        key = f"{options.only}{before}{sample}, seed {seed}"
        folder = run_folder(Path(options.out) / options.task, key)
        bert = options.bert or str(options.from_run)
        settings = {"seed": seed, "bert": bert, "limit": options.limit, **ROWS[options.only]}
        result = kept(HERE / f"glue_{options.task}.json", key, partial(measure, options, settings, folder))
        print(key, json.dumps(result), flush=True)


def measure(options, settings, out):
    """The scores of one training run, and its wall time and processor time in seconds."""
    from kcrf.runs import Settings

    settings = Settings(task="classify", metric=CLASSIFIED[options.task][-1], **settings)
    _, scores, taken = trained(settings, classified_parts(options.task, options.data), out)
    figures = {name: round(value, 5) for name, value in scores["valid"].items() if isinstance(value, float)}
    return {**figures, "examples": scores["valid"]["examples"], **taken}


if __name__ == "__main__":
    main()

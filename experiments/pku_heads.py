"""Scores on the PKU test set by head: softmax, CRF with lr_multiplier 1 and "auto", three seeds each.

    python experiments/pku_heads.py --train pfr199801/train.utf8 --test sighan2005/pku_test_gold.utf8

Every run is `kcrf train --task cws` with the defaults of version 0.1.0, except for the head and the seed ("auto" is
the default multiplier: 1e-2 divided by the learning rate). `--sentences N` trains on N sentences drawn by the seed,
which is faster. `--only NAME` runs one head, `--seeds` sets the seeds. Results are stored in
experiments/pku_heads.json; a stopped experiment resumes after the last complete epoch.
"""

import argparse
import json
import random
from functools import partial
from pathlib import Path

from results import DEFAULTS_0_1, kept, run_folder, trained

RESULTS = Path(__file__).with_suffix(".json")
HEADS = {
    "softmax": {"head": "softmax", "crf_lr_multiplier": "auto"},
    "crf x1": {"head": "crf", "crf_lr_multiplier": 1.0},
    "crf auto": {"head": "crf", "crf_lr_multiplier": 10.0},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", required=True)
    parser.add_argument("--test", required=True)
    parser.add_argument("--only", choices=HEADS, help="one head")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--sentences", type=int, help="train on this many sentences only")
    parser.add_argument("--out", default="runs/pku_heads")
    options = parser.parse_args()
    for seed in options.seeds:
        for name in [options.only] if options.only else HEADS:
            key = f"{name}, seed {seed}" + (f", {options.sentences} sentences" if options.sentences else "")
            folder = run_folder(options.out, key)
            print(key, json.dumps(kept(RESULTS, key, partial(measure, options, seed, HEADS[name], folder))), flush=True)


def measure(options, seed, settings, out):
    """The scores of one training run, and its wall time and processor time in seconds."""
    from kcrf.corpora import read_segmented, split
    from kcrf.runs import Settings

    train = [words for words in read_segmented(options.train) if words]
    test = [words for words in read_segmented(options.test) if words]
    if options.sentences:
        train = random.Random(seed).sample(train, options.sentences)
    train, valid = split(train, 0.1, seed)
    _, scores, taken = trained(Settings(seed=seed, **{**DEFAULTS_0_1, **settings}), (train, valid, test), out)
    figures = {name: round(scores["test"][name], 5) for name in ("f", "precision", "recall", "oov_recall")}
    return {**figures, "valid_f": round(scores["valid"]["f"], 5), **taken}


if __name__ == "__main__":
    main()

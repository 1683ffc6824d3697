"""F1 of word segmentation by one model of two standards, and by a model of each, by seed.

    python experiments/standards.py --pku PATH/pfr199801/train.utf8 --pku-test PATH/pku_test_gold.utf8 \\
        --gsd UD_Chinese-GSD --work runs/standards --encoder linear --sentences 4000
    python experiments/standards.py --pku PATH/pfr199801/train.utf8 --pku-test PATH/pku_test_gold.utf8 \\
        --gsd UD_Chinese-GSD --work runs/standards --encoder cnn --sentences 1000 --gsd-sentences 1000 \\
        --width 64 --epochs 4 --no-ngrams

PKU's standard is trained on PFR 1998-01 without a tenth for validation, GSD's on the training set of UD Chinese GSD,
with its validation set; or on samples of their sentences drawn by the seed. Each is scored on its own test set. Results
are kept in experiments/standards.json.
"""

import argparse
import json
import os
from functools import partial
from pathlib import Path

from results import kept, run_folder, trained

RESULTS = Path(__file__).with_suffix(".json")
ROWS = {"pku alone": ["pku"], "gsd alone": ["gsd"], "both": ["pku", "gsd"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("pku", "pku-test", "gsd", "work"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--sentences", type=int, help="of PFR 1998-01 [all]")
    parser.add_argument("--gsd-sentences", type=int, help="of the training set of GSD [all]")
    parser.add_argument("--width", type=int)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--no-ngrams", action="store_true")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options = parser.parse_args()
    for seed in options.seeds:
        parts = read_parts(options, seed)
        for row, standards in ROWS.items():
            key = f"{options.encoder}, {row}, seed {seed}"
            chosen = [{name: part[name] for name in standards} for part in parts]
            measured = partial(measure, options, chosen, key, seed)
            print(key, json.dumps(kept(RESULTS, key, measured)), flush=True)


def read_parts(options, seed):
    """The sentences for training, validation and testing, dicts by standard."""
    from kcrf.corpora import read_segmented, sample, split

    pku = [words for words in read_segmented(options.pku) if words]
    pku = sample(pku, options.sentences, seed)[0] if options.sentences else pku
    pku = [*split(pku, 0.1, seed), read_segmented(options.pku_test)]
    gsd = [read_segmented(options.gsd / f"{part}.conll") for part in ("train", "dev", "test")]
    gsd[0] = sample(gsd[0], options.gsd_sentences, seed)[0] if options.gsd_sentences else gsd[0]
    return [{"pku": a, "gsd": b} for a, b in zip(pku, gsd, strict=True)]


def measure(options, parts, key, seed):
    """F1 and OOV recall of each standard."""
    from kcrf.runs import Settings

    settings = {"encoder": options.encoder, "width": options.width, "epochs": options.epochs, "seed": seed}
    settings |= {"ngrams": False} if options.no_ngrams else {}
    settings |= {"solver": "adagrad"} if options.encoder == "linear" else {"linear_weight": 0.0}
    if len(parts[0]) == 1:  # a model of its own, as without standards
        parts = [part for by_standard in parts for part in by_standard.values()]
    _, scores, taken = trained(Settings(**settings), parts, run_folder(options.work, key))
    test = scores["test"]
    by_standard = test.get("standards", {"pku" if "pku alone" in key else "gsd": test})
    figures = {name: {x: round(own[x], 5) for x in ("f", "oov_recall")} for name, own in by_standard.items()}
    return {**figures, **taken}


if __name__ == "__main__":
    os.environ.setdefault("KERAS_BACKEND", "torch")
    main()

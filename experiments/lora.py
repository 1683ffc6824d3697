"""Compares LoRA with full fine-tuning of a small Chinese BERT under a CRF: memory and F1 with few sentences.

    KERAS_BACKEND=torch python experiments/lora.py --data ../shared/data

Entities of the People's Daily: F1 on the first 500 test sentences. Results are stored in experiments/lora.json.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np

from kcrf.backend import keras, ops, set_random_seed
from kcrf.corpora import read_conll
from kcrf.layers import ConditionalRandomField, MultiHeadAttention
from kcrf.metrics import entity_scores
from kcrf.models import build_transformer_model
from kcrf.optimizers import AdamWeightDecay, WarmupLinearDecay
from kcrf.tags import bio
from kcrf.tokenizers import load_vocab

RESULTS = Path(__file__).with_suffix(".json")
RATES = {"full": 3e-4, "LoRA, rank 8": 3e-3, "frozen": 3e-3}  # frozen: only the head learns
SCHEME = bio(("LOC", "ORG", "PER"))
LENGTH = 64


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    bert = options.data / "checkpoints" / "zh_small_bert"
    parts = {name: arrays(options, bert, name) for name in ("train", "test")}
    rows = {"sentences": options.sentences, "epochs": options.epochs}
    for method, rate in RATES.items():
        runs = [measured(method, rate, seed, bert, parts, options) for seed in range(options.seeds)]
        kept = {name: runs[0][name] for name in ("trained", "optimizer_bytes")}
        seconds = round(statistics.mean(run["seconds_per_step"] for run in runs), 3)
        rows[method] = {"rate": rate, "f1": [run["f1"] for run in runs], **kept, "seconds_per_step": seconds}
        print(method, rows[method], flush=True)
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def arrays(options, bert, name):
    """The sentences of a part with their ids and tags, `(sentences, time)`."""
    count = options.sentences if name == "train" else 500
    sentences = [
        s for s in read_conll(options.data / "ner" / "people_daily" / f"example.{name}") if len(s.text) < LENGTH - 1
    ]
    sentences, vocab = sentences[:count], load_vocab(bert / "vocab.txt")
    ids, tags = np.zeros((len(sentences), LENGTH), "int32"), np.full((len(sentences), LENGTH), -1)
    for row, sentence in enumerate(sentences):
        known = [vocab.get(character, vocab["[UNK]"]) for character in sentence.text]
        ids[row, : len(known) + 2] = [vocab["[CLS]"], *known, vocab["[SEP]"]]
        tags[row, 1 : len(known) + 1] = SCHEME.encode(sentence.spans, len(known))
    return sentences, ids, tags


def network(method, bert):
    encoder = build_transformer_model(bert)
    if method != "full":
        for variable in encoder.variables:
            variable.trainable = False
    if method.startswith("LoRA"):
        for layer in encoder.layers:
            if isinstance(layer, MultiHeadAttention):
                layer.query.enable_lora(8)
                layer.value.enable_lora(8)
    crf = ConditionalRandomField(lr_multiplier=10, name="CRF")
    return keras.Model(encoder.input, crf(keras.layers.Dense(len(SCHEME), name="Emissions")(encoder.output))), crf


def measured(method, rate, seed, bert, parts, options):
    set_random_seed(seed)
    model, crf = network(method, bert)
    _, ids, tags = parts["train"]
    steps = -(-len(ids) // 16) * options.epochs
    excluded = ("Norm", "bias") if method == "full" else ("bias",)
    model.compile(
        AdamWeightDecay(WarmupLinearDecay(rate, steps // 10, steps), exclude_from_weight_decay=excluded),
        loss=crf.sparse_loss,
    )
    start = time.perf_counter()
    model.fit([ids, np.zeros_like(ids)], tags, batch_size=16, epochs=options.epochs, verbose=0)
    seconds = (time.perf_counter() - start) / steps
    return {
        "f1": f1(model, crf, *parts["test"][:2]),
        "trained": sum(int(np.prod(v.shape)) for v in model.trainable_variables),
        "optimizer_bytes": sum(4 * int(np.prod(v.shape)) for v in model.optimizer.variables),
        "seconds_per_step": seconds,
    }


def f1(model, crf, sentences, ids):
    found = ops.convert_to_numpy(crf.decode(model.predict([ids, np.zeros_like(ids)], verbose=0)))
    predicted = [SCHEME.decode(row[1 : len(s.text) + 1]) for s, row in zip(sentences, found, strict=True)]
    return round(float(entity_scores([s.spans for s in sentences], predicted)["f"]), 4)


if __name__ == "__main__":
    main()

"""The scores of experiments/glue.py with Hugging Face's `Trainer`: the same BERT without kcrf.

    pip install accelerate
    python experiments/glue_trainer.py rte --data classification/RTE --bert all-MiniLM-L6-v2

Datasets, epochs, batches, learning rate and warmup are the defaults of `kcrf train --task classify --bert`, and the
best epoch counts. All other settings are those of `Trainer`; for instance, the head has no separate learning rate. For
classification tasks only. Results are stored in experiments/glue_<task>.json under "Trainer".
"""

import argparse
import json
import tempfile
import time
from functools import partial

from data import CLASSIFIED, classified_parts
from glue import HERE
from results import kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["rte", "mrpc", "cola"])
    parser.add_argument("--data", required=True, help="the folder of the task")
    parser.add_argument("--bert", required=True, help="a folder in Hugging Face's format")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options = parser.parse_args()
    for seed in options.seeds:
        key = f"Trainer, seed {seed}"
        result = kept(HERE / f"glue_{options.task}.json", key, partial(measure, options, seed))
        print(key, json.dumps(result), flush=True)


def measure(options, seed):
    """The scores of the best epoch, those of all epochs by the metric of the task, and the time."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments, set_seed

    from kcrf.runs import Settings

    began = time.perf_counter()
    metric = CLASSIFIED[options.task][-1]
    settings = Settings(task="classify", bert=options.bert).values()
    train, valid = classified_parts(options.task, options.data)
    labels = sorted({row[-1] for row in train})
    tokenizer = AutoTokenizer.from_pretrained(options.bert)
    train, valid = (encode(rows, labels, tokenizer, settings["max_length"]) for rows in (train, valid))
    set_seed(seed)
    model = AutoModelForSequenceClassification.from_pretrained(options.bert, num_labels=len(labels))
    with tempfile.TemporaryDirectory() as out:
        arguments = TrainingArguments(
            output_dir=out,
            num_train_epochs=settings["epochs"],
            per_device_train_batch_size=settings["batch_size"],
            learning_rate=settings["learning_rate"],
            warmup_steps=settings["warmup"],
            seed=seed,
            eval_strategy="epoch",
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        )
        parts = {"train_dataset": train, "eval_dataset": valid}
        trainer = Trainer(model, arguments, **parts, processing_class=tokenizer, compute_metrics=scores)
        trainer.train()
    epochs = [row for row in trainer.state.log_history if "eval_accuracy" in row]
    best = max(epochs, key=lambda row: row[f"eval_{metric}"])
    return {
        **{name: round(best[f"eval_{name}"], 5) for name in ("accuracy", "f", "matthews")},
        "epochs": [round(row[f"eval_{metric}"], 5) for row in epochs],
        "examples": len(valid),
        "seconds": round(time.perf_counter() - began),
    }


def encode(rows, labels, tokenizer, max_length):
    cut = {"truncation": True, "max_length": max_length}
    return [{**tokenizer(*row[:-1], **cut), "labels": labels.index(row[-1])} for row in rows]


def scores(predicted):
    """Accuracy, binary F1 and Matthews."""
    from kcrf.metrics import classification_scores

    answers, truth = predicted.predictions.argmax(axis=-1).tolist(), predicted.label_ids.tolist()
    figures = classification_scores(truth, answers, sorted(set(truth)))
    return {name: figures[name] for name in ("accuracy", "f", "matthews")}


if __name__ == "__main__":
    main()

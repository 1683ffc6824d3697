"""The time of an epoch of fine-tuning a BERT: `kcrf train --task classify` and Hugging Face's `Trainer`, taking turns.

    pip install accelerate
    python benchmarks/finetune_speed.py --bert FOLDER --train msr_paraphrase_train.txt --fields 3,4,0

Both train the same BERT on the same pairs of texts, in one process and on torch, with batches of the same size and
AdamW; they take turns, an epoch each, and the first epoch does not count. An epoch of kcrf's also scores the held-out
part, here 32 examples, and saves the weights; `Trainer` does neither. The ratio is the median of the rounds' ratios: of
wall time, and of processor time, which depends less on other load on the machine. `Trainer` draws batches at random, as
it does by default, or of similar lengths with `--group`; kcrf's have similar lengths.
"""

import argparse
import json
import os
import statistics
import tempfile
import threading
import time
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "torch")
SIDES = ("trainer", "kcrf")
MAX_LENGTH = 128


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bert", required=True, help="a folder in Hugging Face's format")
    parser.add_argument("--train", required=True, help="a table of texts, or pairs of texts, with labels")
    parser.add_argument("--fields", required=True, help="as for `kcrf train`")
    parser.add_argument("--examples", type=int, default=512, help="of the table, at most [%(default)s]")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--group", action="store_true", help="let `Trainer` group texts by length, too")
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args()
    figures = measure(options)
    print(f"{'':8} {'steps':>6} {'clock':>9} {'processors':>11}   seconds an epoch, median of {options.rounds}")
    for side in SIDES:
        row = figures[side]
        print(f"{side:8} {row['steps']:6} {row['seconds']:9.2f} {row['processor_seconds']:11.2f}")
    print(f"{'ratio':15} {figures['ratio']:9.3f} {figures['processor_ratio']:11.3f}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


def measure(options):
    """The figures of both sides, a dict."""
    from kcrf.corpora import read_classified, sample

    examples = read_classified(options.train, options.fields.split(","))
    examples, _ = sample(examples, min(options.examples, len(examples)), seed=0)
    epochs, steps = epochs_in_turn(examples, options)
    ratios = [[ours / theirs for theirs, ours in zip(*rows)] for rows in zip(*(epochs[side] for side in SIDES))]
    ratio, processor_ratio = (round(statistics.median(column), 4) for column in zip(*ratios))
    medians = {side: [round(statistics.median(column), 3) for column in zip(*epochs[side])] for side in SIDES}
    return {
        **{
            side: {"steps": steps[side], **dict(zip(("seconds", "processor_seconds"), medians[side]))} for side in SIDES
        },
        "ratio": ratio,
        "processor_ratio": processor_ratio,
        "examples": len(examples),
        "grouped": options.group,
        "load": round(os.getloadavg()[0], 1),
    }


class Turn:
    """The turns of one side: it waits before each epoch but the first, times the epoch, and passes the turn on."""

    def __init__(self, own, following, rounds):
        self.own, self.following, self.rounds = own, following, rounds
        self.times, self.steps = [], 0

    def begin(self):
        if self.times:
            self.own.acquire()
        self.began = time.perf_counter(), time.process_time()

    def end(self):
        self.times.append((time.perf_counter() - self.began[0], time.process_time() - self.began[1]))
        if len(self.times) <= self.rounds:
            self.following.release()


def epochs_in_turn(examples, options):
    """The (seconds, processor seconds) of each epoch but the first, and the steps of an epoch, by side."""
    signals = {side: threading.Semaphore(0) for side in SIDES}
    others = dict(zip(SIDES, reversed(SIDES)))
    turns = {side: Turn(signals[side], signals[others[side]], options.rounds) for side in SIDES}

    def run(side, train, out):
        signals[side].acquire()
        try:
            train(examples, options, turns[side], out)
        finally:
            signals[others[side]].release()

    with tempfile.TemporaryDirectory() as out:
        jobs = {"trainer": train_with_trainer, "kcrf": train_with_kcrf}
        threads = [threading.Thread(target=run, args=(side, jobs[side], Path(out) / side)) for side in SIDES]
        for thread in threads:
            thread.start()
        signals[SIDES[0]].release()
        for thread in threads:
            thread.join()
    return {side: turn.times[1:] for side, turn in turns.items()}, {side: turn.steps for side, turn in turns.items()}


def train_with_kcrf(examples, options, turn, out):
    """Trains as `kcrf train` does."""
    from kcrf.backend import keras
    from kcrf.runs import Settings
    from kcrf.training import train_classifier

    class Progress(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            turn.begin()

        def on_epoch_end(self, epoch, logs=None):
            turn.steps = self.params["steps"]
            turn.end()

        def report(self, row):
            pass

    epochs = {"epochs": options.rounds + 1, "batch_size": options.batch_size, "max_length": MAX_LENGTH}
    settings = Settings(task="classify", bert=options.bert, **epochs)
    train_classifier(settings, examples, examples[:32], out=out, progress=Progress())


def train_with_trainer(examples, options, turn, out):
    """Trains as the examples of Hugging Face do."""
    import transformers

    class Progress(transformers.TrainerCallback):
        def on_epoch_begin(self, args, state, control, **kwargs):
            turn.begin()

        def on_epoch_end(self, args, state, control, **kwargs):
            turn.steps = state.max_steps // (options.rounds + 1)
            turn.end()

    labels = sorted({example.label for example in examples})
    tokenizer = transformers.AutoTokenizer.from_pretrained(options.bert)
    rows = [
        {
            **tokenizer(*filter(None, example.texts), truncation=True, max_length=MAX_LENGTH),
            "labels": labels.index(example.label),
        }
        for example in examples
    ]
    model = transformers.AutoModelForSequenceClassification.from_pretrained(options.bert, num_labels=len(labels))
    arguments = transformers.TrainingArguments(
        output_dir=str(out),
        num_train_epochs=options.rounds + 1,
        per_device_train_batch_size=options.batch_size,
        learning_rate=5e-5,
        train_sampling_strategy="group_by_length" if options.group else "random",
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    collator = transformers.DataCollatorWithPadding(tokenizer)
    transformers.Trainer(model, arguments, collator, rows, callbacks=[Progress()]).train()


if __name__ == "__main__":
    main()

"""What a CRF adds to the time of an epoch: `kcrf train` with softmax and with a CRF, taking turns in one process.

    python benchmarks/epoch_speed.py                              the built-in corpus of entities, ten times over
    python benchmarks/epoch_speed.py --task cws --train words.txt --sentences 4000 --rounds 7 --json speed.json

Two training runs take turns, an epoch each: batches, training, the scores of the held-out tenth, the CRF's monitor,
saving. The first epoch, which compiles, does not count. The ratio is the median of the rounds' ratios: of wall
time, and of processor time, which depends less on other load on the machine.
"""

import argparse
import json
import os
import statistics
import tempfile
import threading
import time
from pathlib import Path

HEADS = ("softmax", "crf")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=["cws", "ner"], default="ner")
    parser.add_argument("--train", help="a corpus in place of the built-in one; for ner CoNLL, read with repair")
    parser.add_argument("--sentences", type=int, default=4000, help="of the corpus, at most [%(default)s]")
    parser.add_argument("--encoder", help="in place of the default")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args()
    figures = measure(options)
    print(f"{'':8} {'clock':>9} {'processors':>11}   seconds an epoch, median of {options.rounds}")
    for head in HEADS:
        print(f"{head:8} {figures[head]['seconds']:9.2f} {figures[head]['processor_seconds']:11.2f}")
    print(f"{'ratio':8} {figures['ratio']:9.3f} {figures['processor_ratio']:11.3f}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


def measure(options):
    """The figures of both heads, a dict."""
    sentences = corpus(options)
    epochs = epochs_in_turn(sentences, options)
    medians = [[round(statistics.median(column), 3) for column in zip(*epochs[head])] for head in HEADS]
    ratios = [[c / s for c, s in zip(crf, softmax)] for softmax, crf in zip(*(epochs[head] for head in HEADS))]
    ratio, processor_ratio = (round(statistics.median(column), 4) for column in zip(*ratios))
    return {
        **{head: dict(zip(("seconds", "processor_seconds"), row)) for head, row in zip(HEADS, medians)},
        "ratio": ratio,
        "processor_ratio": processor_ratio,
        "epochs": {head: [[round(x, 3) for x in row] for row in epochs[head]] for head in HEADS},
        "task": options.task,
        "encoder": options.encoder,
        "sentences": len(sentences),
        "backend": os.environ.get("KERAS_BACKEND", "tensorflow"),
        "load": round(os.getloadavg()[0], 1),
    }


def corpus(options):
    """The sentences to train on."""
    from kcrf.corpora import load_mini, read_conll, read_segmented

    if options.train is None:
        sentences = 10 * load_mini(options.task).train
    elif options.task == "ner":
        sentences = read_conll(options.train, repair=True)
    else:
        sentences = [words for words in read_segmented(options.train) if words]
    return sentences[: options.sentences]


def epochs_in_turn(sentences, options):
    """The (seconds, processor seconds) of each epoch but the first, by head."""
    from kcrf.backend import keras
    from kcrf.corpora import split
    from kcrf.runs import Settings
    from kcrf.training import train_tagger

    class Turns(keras.callbacks.Callback):
        """Waits for its turn before an epoch, times it, and passes the turn on."""

        def on_epoch_begin(self, epoch, logs=None):
            if epoch:
                turns[self.head].acquire()
            self.began = time.perf_counter(), time.process_time()

        def on_epoch_end(self, epoch, logs=None):
            times[self.head].append((time.perf_counter() - self.began[0], time.process_time() - self.began[1]))
            if epoch < options.rounds:
                self.following.release()

        def report(self, row):
            pass

    def run(head, following, out):
        turns[head].acquire()
        try:
            progress = Turns()
            progress.head, progress.following = head, following
            settings = Settings(task=options.task, encoder=options.encoder, head=head, epochs=options.rounds + 1)
            train_tagger(settings, *split(sentences), out=Path(out) / head, progress=progress)
        finally:
            following.release()

    turns = {head: threading.Semaphore(0) for head in HEADS}
    times = {head: [] for head in HEADS}
    with tempfile.TemporaryDirectory() as out:
        others = (turns["crf"], turns["softmax"])
        threads = [threading.Thread(target=run, args=(head, other, out)) for head, other in zip(HEADS, others)]
        for thread in threads:
            thread.start()
        turns[HEADS[0]].release()
        for thread in threads:
            thread.join()
    return {head: rows[1:] for head, rows in times.items()}


if __name__ == "__main__":
    main()

"""Tokens a second of `kcrf pretrain` and of the bare training step of the same model, taking turns in one process.

    python benchmarks/pretrain_speed.py TEXT [--mask words --every 500 --rounds 5 --json speed.json]

Before each round of the pretraining the same model takes as many steps by `train_on_batch`, on one made-up batch. A
round makes its batches, trains, scores the held-out windows, and saves the weights and the state. The first
round, which compiles, does not count. The ratio is the median of the rounds' ratios of processor time; 1 is a
pretraining whose steps cost nothing more. TEXT is a UTF-8 file of 2,000 windows at least, for a usual held-out part.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text")
    parser.add_argument("--mask", default="tokens", help="[%(default)s]")
    parser.add_argument("--layers", type=int, default=4, help="[%(default)s]")
    parser.add_argument("--width", type=int, default=256, help="[%(default)s]")
    parser.add_argument("--every", type=int, default=500, help="steps of a round [%(default)s]")
    parser.add_argument("--rounds", type=int, default=3, help="[%(default)s]")
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args()
    figures = measure(options)
    for name in ("bare", "pretraining"):
        print(f"{name:12} {figures[name]:10,.0f} tokens a processor second")
    print(f"{'ratio':12} {figures['ratio']:10.3f}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


def measure(options):
    """The figures, a dict."""
    from kcrf.backend import backend_name, keras
    from kcrf.pretraining import PretrainingSettings, pretrain

    class Turns(keras.callbacks.Callback):
        """Takes as many bare steps before each round, and times both."""

        def __init__(self):
            super().__init__()
            self.times = []

        def on_epoch_begin(self, epoch, logs=None):
            bare = self._bare_steps() if epoch else 0.0
            self.times.append((bare, time.process_time()))

        def _bare_steps(self):
            began = time.process_time()
            for _ in range(options.every):
                self.model.train_on_batch(*batch)
            return time.process_time() - began

        def on_epoch_end(self, epoch, logs=None):
            bare, began = self.times[-1]
            self.times[-1] = bare, time.process_time() - began

        def report(self, row):
            pass

    settings = PretrainingSettings(
        mask=options.mask,
        layers=options.layers,
        width=options.width,
        steps=options.every * (options.rounds + 1),
        every=options.every,
    )
    turns, batch = Turns(), made_up_batch(settings)
    with tempfile.TemporaryDirectory() as out:
        pretrain(settings, [options.text], Path(out) / "model", progress=turns)
    times, tokens = turns.times[1:], options.every * settings.batch_size * settings.length
    return {
        "bare": round(statistics.median(tokens / bare for bare, _ in times)),
        "pretraining": round(statistics.median(tokens / whole for _, whole in times)),
        "ratio": round(statistics.median(bare / whole for bare, whole in times), 4),
        "seconds": [[round(x, 2) for x in row] for row in times],
        "backend": backend_name(),
        "mask": options.mask,
        "load": round(os.getloadavg()[0], 1),
    }


def made_up_batch(settings):
    """Inputs, targets and weights of the shapes that pretraining has."""
    import numpy as np

    from kcrf.pretraining.batches import POSITIONS

    size, predictions = settings.batch_size, round(settings.rate * (settings.length - 1))
    random = np.random.default_rng(0)
    tokens = random.integers(5, 100, (size, settings.length)).astype("int32")
    positions = np.sort(random.permuted(np.tile(np.arange(1, settings.length), (size, 1)), axis=1)[:, :predictions])
    inputs = {"Input-Token": tokens, "Input-Segment": np.zeros_like(tokens), POSITIONS: positions.astype("int32")}
    return inputs, np.take_along_axis(tokens, positions, axis=1), np.ones((size, predictions), "float32")


if __name__ == "__main__":
    main()

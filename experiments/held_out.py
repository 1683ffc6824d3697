"""Which validation set predicts the test score: random lines of the training text, or contiguous parts of it.

    python experiments/held_out.py --train pfr199801/train.utf8 --test sighan2005/pku_test_gold.utf8

One model per seed is scored on three validation sets that it has not seen. "last" is the end of the text, "stretches"
are ten contiguous parts spread over the text, and "lines" are random lines of the remaining text. `--lines N` uses only
the first N lines of the training text. Results are stored in experiments/held_out.json.
"""

import argparse
import json
import os
import random
import tempfile
import time
from functools import partial
from pathlib import Path

from data import words_as_sentence
from results import kept

RESULTS = Path(__file__).with_suffix(".json")
STRETCHES = 10


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", required=True)
    parser.add_argument("--test", required=True)
    parser.add_argument("--lines", type=int, help="use only this many lines of the training text")
    parser.add_argument("--test-lines", type=int, help="use only this many lines of the test, drawn by the seed")
    parser.add_argument("--share", type=float, default=0.05, help="of the lines in each held-out part [0.05]")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    options = parser.parse_args()
    for seed in options.seeds:
        key = f"{options.lines or 'all'} lines, {options.epochs} epochs, width {options.width}, seed {seed}"
        print(key, json.dumps(kept(RESULTS, key, partial(measure, options, seed))), flush=True)


def held_out(count, share, seed):
    """The indices of the parts "last", "stretches" and "lines" of this many lines, and of the "rest"."""
    size, rng = max(STRETCHES, round(share * count)), random.Random(seed)
    last, others = range(count - size, count), range(count - size)
    cell, length = len(others) // STRETCHES, size // STRETCHES
    starts = [i * cell + rng.randrange(cell - length + 1) for i in range(STRETCHES)]
    stretches = [i for start in starts for i in range(start, start + length)]
    remaining = sorted(set(others) - set(stretches))
    lines = sorted(rng.sample(remaining, size))
    return {"last": [*last], "stretches": stretches, "lines": lines, "rest": sorted(set(remaining) - set(lines))}


def measure(options, seed):
    """F1 of one model on each part and on the test."""
    from kcrf.corpora import read_segmented
    from kcrf.runs import Settings
    from kcrf.training import train_tagger

    text, test = (
        [words_as_sentence(words) for words in read_segmented(path) if words] for path in (options.train, options.test)
    )
    text = text[: options.lines]
    parts = {name: [text[i] for i in chosen] for name, chosen in held_out(len(text), options.share, seed).items()}
    if options.test_lines:
        test = random.Random(seed).sample(test, options.test_lines)
    worked = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(seed=seed, epochs=options.epochs, width=options.width, linear_weight=0.0)
        tagger, _ = train_tagger(settings, parts["rest"], parts["stretches"], out=Path(folder) / "run")
        known = {s.text[start:end] for s in parts.pop("rest") for start, end in s.spans}
        scores = {name: tagger.scores(part, known) for name, part in {**parts, "test": test}.items()}
    return {
        "f": {name: round(figures["f"], 5) for name, figures in scores.items()},
        "oov": {name: round(figures["oov_rate"], 5) for name, figures in scores.items()},
        "lines": {**{name: len(part) for name, part in parts.items()}, "test": len(test)},
        "processor_seconds": round(time.process_time() - worked, 1),
        "backend": os.environ.get("KERAS_BACKEND", "tensorflow"),
    }


if __name__ == "__main__":
    main()

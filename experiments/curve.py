"""Learning curves verified backwards: from half of the sentences, the score with all of them.

    python experiments/curve.py --data PATH [--corpora people_daily ...] [--sizes 200 600 2000] [--seeds 0 1]

For each corpus, size and seed, so many sentences of the training set are drawn. `learning_curve` sees half of them, and
predicts F1 with all of them, with an interval. The real F1 is that of a linear model of all of them (without augmented
copies, as `kcrf curve` trains) on 1,500 other sentences of the training set. Scores are kept in experiments/curve.json.
"""

import argparse
import json
import time
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from data import TAGGED, parts_of
from results import kept

RESULTS = Path(__file__).with_suffix(".json")
CORPORA = ["people_daily", "weibo", "wnut17", "ud_gsd", "pfr199801"]
TEST = 1500


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of the corpora; without it, the results are shown")
    parser.add_argument("--corpora", nargs="+", default=CORPORA)
    parser.add_argument("--sizes", nargs="+", type=int, default=[200, 600, 2000])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    options = parser.parse_args()
    for size, seed, corpus in product(options.sizes, options.seeds, options.corpora) if options.data else ():
        key = f"{corpus}, {size}, seed {seed}"
        print(key, json.dumps(kept(RESULTS, key, partial(measure, options.data, corpus, size, seed))), flush=True)
    from kcrf.metrics.learning_curves import PowerLaw

    rows = [row for row in json.loads(RESULTS.read_text(encoding="utf-8")).values() if "scores" in row]
    predicted = [PowerLaw(row["sizes"], row["scores"]).score(row["size"]) for row in rows]
    errors = np.array([score.value - row["f"] for score, row in zip(predicted, rows)])
    inside = sum(score.low <= row["f"] <= score.high for score, row in zip(predicted, rows))
    print(
        f"{len(rows)} cells: mean absolute error {np.abs(errors).mean():.4f}, mean error {errors.mean():+.4f}, within "
        f"0.015 in {(np.abs(errors) <= 0.015).sum()}, inside of the interval in {inside}"
    )


def measure(data, corpus, size, seed):
    """F1 with all sentences, predicted from half of them with its interval, and measured."""
    from kcrf.progress_bars import quiet
    from kcrf.training import Settings, learning_curve
    from kcrf.training.curve import score_of

    train = parts_of(data, corpus)[0]
    order = [train[i] for i in np.random.default_rng(seed).permutation(len(train))]
    if len(order) < size + TEST // 2:
        return {}
    settings = Settings(task=TAGGED[corpus][0], encoder="linear", augment=0, seed=seed)
    began = time.process_time()
    with quiet(True):
        try:
            curve = learning_curve(settings, order[: size // 2])
        except ValueError as error:
            return {"refused": str(error)}
        seconds = time.process_time() - began
        _, score = score_of(settings, order[:size], order[size : size + TEST])
    return {
        "size": size,
        "f": round(score, 4),
        "sizes": curve.sizes,
        "scores": curve.scores.round(4).tolist(),
        "seconds": round(seconds, 1),
    }


if __name__ == "__main__":
    main()

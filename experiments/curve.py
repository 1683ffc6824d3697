"""Learning curves verified backwards: from half of the sentences, the score with all of them.

    python experiments/curve.py --data PATH [--corpora people_daily ...] [--sizes 200 600 2000] [--seeds 0 1]
    python experiments/curve.py --data PATH --chance 8 --corpora people_daily weibo wnut17 --sizes 200

For each corpus, size and seed, so many sentences of the training set are drawn. `learning_curve` sees half of them, and
predicts F1 with all of them, with an interval. The real F1 is that of a linear model of all of them (without augmented
copies, as `kcrf curve` trains) on 1,500 other sentences of the training set. Scores are kept in experiments/curve.json.

`--chance` keeps the half that `learning_curve` sees, and draws the other half and the test sentences so many times. The
best prediction from this half is the mean of their scores: what differs from it is chance.
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
    parser.add_argument("--chance", type=int, help="draw the second half of the sentences so many times")
    options = parser.parse_args()
    if options.chance:
        return print_chance(options)
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
    from kcrf.training import learning_curve
    from kcrf.training.curve import score_of

    train = parts_of(data, corpus)[0]
    order = [train[i] for i in np.random.default_rng(seed).permutation(len(train))]
    if len(order) < size + TEST // 2:
        return {}
    settings = settings_of(corpus, seed)
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


def settings_of(corpus, seed):
    from kcrf.training import Settings

    return Settings(task=TAGGED[corpus][0], encoder="linear", augment=0, seed=seed)


def print_chance(options):
    """Prints how often the best prediction from half of the sentences would be within 0.015."""
    errors = []
    for size, seed, corpus in product(options.sizes, options.seeds, options.corpora):
        key = f"{corpus}, {size}, seed {seed}, {options.chance} second halves"
        row = kept(RESULTS, key, partial(drawn_again, options.data, corpus, size, seed, options.chance))
        print(key, json.dumps(row), flush=True)
        scores = np.array(row["drawn"])
        errors.append((scores - scores.mean()) * (len(scores) / (len(scores) - 1)) ** 0.5)  # their mean is fitted
    print(
        f"{len(errors)} cells: standard deviation {np.std(errors, axis=1).mean():.4f}, "
        f"within 0.015 of the mean in {np.mean(np.abs(errors) <= 0.015):.0%}"
    )


def drawn_again(data, corpus, size, seed, draws):
    """F1 with the same first half of the sentences, and others in the second half and in the test."""
    train = parts_of(data, corpus)[0]
    order = [train[i] for i in np.random.default_rng(seed).permutation(len(train))]
    half, rest, scores = order[: size // 2], order[size // 2 :], []
    for draw in range(draws):
        others = [rest[i] for i in np.random.default_rng([seed, draw]).permutation(len(rest))]
        second, test = others[: size - len(half)], others[size - len(half) :][:TEST]
        scores.append(score_of_all(settings_of(corpus, seed), half + second, test))
    return {"drawn": np.round(scores, 4).tolist()}


def score_of_all(settings, train, test):
    """F1 of a linear model that learns all sentences, as those of `measure` do, without the models of its folds."""
    from kcrf.training.data import read_data
    from kcrf.training.linear import linear_tagger, train_linear_models
    from kcrf.training.plan import plan_run
    from kcrf.training.stages import STAGES

    plan = plan_run(settings, read_data(settings, train, test), table=STAGES)
    return linear_tagger(plan, train_linear_models(plan, plan.windows)).scores(test)["f"]


if __name__ == "__main__":
    main()

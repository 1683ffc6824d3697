"""F1 by the number of labeled sentences, chosen at random or by the uncertainty of the model, by seed.

    python experiments/active_learning.py people_daily --data PATH/people_daily
    python experiments/active_learning.py weibo --data PATH/weibo
    python experiments/active_learning.py gsd --data PATH/ud_gsd
    python experiments/active_learning.py people_daily --plot docs/active_learning.png

A seed draws a pool of 2,000 sentences from the training set (all of Weibo's). The first 100 sentences of the pool are
labeled. Then a linear model is trained (`kcrf train --encoder linear --solver adagrad`), a tenth of the labeled
sentences for validation, and 100 more sentences are labeled, as `kcrf suggest` chooses them; and so on, up to 500
sentences, then twice 250 more. "random" takes the next sentences of the pool, and goes on to 2,000. F1 is that of the
test set (People's Daily and GSD: its first 600 sentences; Weibo: validation and test set together). Two strategies are
not in `kcrf suggest`: "total-entropy" is the sum of the entropies of all tags, "longest" takes the longest sentences.
Results are stored in experiments/active_learning.json. The last lines are the means over the seeds, and for each number
of sentences, how many random ones have the same F1, by linear interpolation of the mean curves.
"""

import argparse
import json
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from results import kept

RESULTS = Path(__file__).with_suffix(".json")
SIZES, MORE = [100, 200, 300, 400, 500, 750, 1000], [1500, 2000]
POOL, TEST = 2000, 600
STRATEGIES = ("random", "mean-entropy", "token-entropy", "sequence-entropy", "least-confidence")
OTHERS = ("total-entropy", "longest")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", choices=["people_daily", "weibo", "gsd"])
    parser.add_argument("--data", type=Path, help="its folder; without it, the stored results are shown")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--only", nargs="+", default=STRATEGIES, choices=STRATEGIES + OTHERS)
    parser.add_argument("--plot", type=Path, help="a PNG file to write")
    options = parser.parse_args()
    if options.data:
        measure_all(options)
    means = mean_curves(options.corpus)
    for strategy, (count, curve_of_means) in means.items():
        print(f"{options.corpus}, {strategy}, mean of {count} seeds: {json.dumps(curve_of_means)}")
        if strategy != "random":
            print(f"  the same F1 by random choice: {json.dumps(random_sentences(means, strategy))}")
    if options.plot:
        plot(means, options.plot)


def measure_all(options):
    """Measures what is not stored yet."""
    train, test = read_parts(options.corpus, options.data)
    for seed in options.seeds:
        for strategy in options.only:
            key = f"{options.corpus}, {strategy}, seed {seed}"
            measure = partial(curve, options.corpus, train, test, strategy, seed)
            print(key, json.dumps(kept(RESULTS, key, measure)), flush=True)


def read_parts(corpus, folder):
    """The training set and the test set, lists of `Sentence`s."""
    from kcrf.corpora import read_conll, read_segmented
    from kcrf.tasks.task import as_sentence

    def read(part):
        (path,) = (path for path in folder.iterdir() if path.stem == part or path.suffix == f".{part}")
        if corpus == "gsd":
            return [as_sentence(words) for words in read_segmented(path) if words]
        return read_conll(path, repair=corpus == "weibo")

    test = read("test") + (read("dev") if corpus == "weibo" else [])
    return read("train"), test[:TEST]


def curve(corpus, train, test, strategy, seed):
    """Lists with the number of sentences, of their characters and the F1 of each round."""
    order = np.random.default_rng(seed).permutation(len(train))[:POOL]
    pool, labeled, rounds = [train[i] for i in order], list(range(SIZES[0])), []
    for size in [n for n in SIZES + MORE * (strategy == "random") if n <= len(pool)]:
        if size > len(labeled):
            labeled += chosen(strategy, tagger, pool, labeled, size - len(labeled))  # noqa: F821
        tagger = trained([pool[i] for i in labeled], "cws" if corpus == "gsd" else "ner", seed)
        rounds.append((size, sum(len(pool[i].text) for i in labeled), round(tagger.scores(test)["f"], 4)))
    return dict(zip(("sentences", "characters", "f"), map(list, zip(*rounds))))


def trained(sentences, task, seed):
    """A linear model of the labeled sentences."""
    from kcrf.corpora import split
    from kcrf.training import Settings, train_tagger

    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(task=task, encoder="linear", solver="adagrad", seed=seed, augment=0)
        return train_tagger(settings, *split(sentences, 0.1, seed), out=f"{folder}/run")[0]


def chosen(strategy, tagger, pool, labeled, count):
    """The numbers of the sentences of the pool to label next."""
    from kcrf.corpora.splits import NearDuplicates
    from kcrf.taggers.suggestions import distinct, most_uncertain

    rest = sorted(set(range(len(pool))) - set(labeled))
    if strategy == "random":
        return rest[:count]
    scores = uncertainties(strategy, tagger, [pool[i].text for i in rest])
    seen = NearDuplicates(pool[i].text for i in labeled)
    return [rest[i] for i in distinct(most_uncertain(scores), lambda i: pool[rest[i]].text, count, seen)]


def uncertainties(strategy, tagger, texts):
    """The score of each text."""
    from kcrf.taggers.spans import Part
    from kcrf.taggers.suggestions import tag_entropies

    if strategy == "longest":
        return np.array(list(map(len, texts)))
    if strategy == "total-entropy":
        parts = [Part(text, []) for text in texts]
        return tagger.decoder.uncertainties(parts, tag_entropies)[0]
    return tagger.uncertainties(texts, strategy)


def mean_curves(corpus):
    """By strategy the number of seeds and the mean curve."""
    results, means = json.loads(RESULTS.read_text(encoding="utf-8")), {}
    for strategy in STRATEGIES + OTHERS:
        curves = [value for key, value in results.items() if key.startswith(f"{corpus}, {strategy}, seed")]
        if curves:
            columns = {name: np.mean([c[name] for c in curves], axis=0).round(4).tolist() for name in curves[0]}
            means[strategy] = len(curves), columns
    return means


def random_sentences(means, strategy):
    """How many random sentences have the F1 of each number of chosen ones, a dict; None beyond the curve."""
    (_, random), (_, chosen_ones) = means["random"], means[strategy]
    rising = np.maximum.accumulate(random["f"])
    needed = [
        round(float(np.interp(f, rising, random["sentences"]))) if f <= rising[-1] else None for f in chosen_ones["f"]
    ]
    return dict(zip(map(round, chosen_ones["sentences"]), needed))


def plot(means, path):
    """Draws the mean curves, by sentences and by characters."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for axes, unit in zip(figure.subplots(1, 2, sharey=True), ("sentences", "characters")):
        for strategy, (_, columns) in means.items():
            style = {"color": "gray", "linestyle": "--"} if strategy == "random" else {}
            axes.plot(columns[unit], columns["f"], marker=".", label=strategy, **style)
        axes.set(xlabel=f"labeled {unit}", ylabel="F1" if unit == "sentences" else "", xlim=(0, None))
        axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=80, metadata={"Software": None})


if __name__ == "__main__":
    main()

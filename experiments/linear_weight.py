"""F1 of the average of a network and a linear model by the weight of the linear model.

    python experiments/linear_weight.py --data FOLDER [--only "weibo, 300" ...]

FOLDER is that of benchmarks/linear.py. A network and a linear model are trained on the first sentences of the training
set, with the first ones of the validation set for the epoch, 100 or as many as those, and averaged with several
weights. The averages are scored on 300 to 1,000 sentences that follow in the training set, which trained and chose
nothing: the default weights were chosen by these scores. "valid_f" is F1 on the validation set, by which
`--linear-weight auto` chooses. Results are kept in experiments/linear_weight.json; those of gsd are older: there the
scores of the linear models were not rounded to 8 bits.
"""

import argparse
import json
import sys
import tempfile
from functools import partial
from pathlib import Path

from results import kept

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from linear import figures, read_parts

RESULTS = Path(__file__).with_suffix(".json")
CELLS = (  # trained, scored
    ("gsd", 100, 600),
    ("gsd", 300, 300),
    ("weibo", 300, 1000),
    ("weibo", 1000, 350),
    ("people_daily", 100, 1000),
    ("people_daily", 300, 1000),
    ("people_daily", 1000, 1000),
    ("wnut17", 300, 1000),
    ("wnut17", 1000, 1000),
)
WEIGHTS = (0.0, 0.3, 0.5, 0.7, 1.0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--only", nargs="+", help='cells such as "weibo, 300"')
    options = parser.parse_args()
    for corpus, size, scored in CELLS:
        key = f"{corpus}, {size}"
        if options.only is None or key in options.only:
            parts = read_parts(options.data, corpus)
            print(key, json.dumps(kept(RESULTS, key, partial(measure, corpus, size, scored, parts))), flush=True)


def measure(corpus, size, scored, parts):
    """The scores for each weight of the linear model."""
    from kcrf.runs import Settings
    from kcrf.tasks.task import as_sentence
    from kcrf.training import train_tagger
    from kcrf.training.linear_part import LinearPart

    train, valid = parts[0], parts[1][: max(size, 100)]
    task = "cws" if corpus in ("pku", "gsd") else "ner"
    with tempfile.TemporaryDirectory() as folder:
        network, linear = (
            train_tagger(Settings(task=task, augment=0, **settings), train[:size], valid, out=Path(folder) / name)[0]
            for name, settings in {"network": {"linear_weight": 0.0}, "linear": {"encoder": "linear"}}.items()
        )
    sentences = [as_sentence(item) for item in train[size : size + scored]]
    words = {sentence.text[s:e] for sentence in map(as_sentence, train[:size]) for s, e, *_ in sentence.spans}
    valid_sentences, scores = list(map(as_sentence, valid)), {}
    for weight in WEIGHTS:
        with LinearPart({None: linear.model}, WEIGHTS).averaged(network.model, weight):
            held_out = figures(network.score(sentences, network.spans_of(sentences), words))
            scores[weight] = {**held_out, "valid_f": round(network.scores(valid_sentences)["f"], 4)}
    return scores


if __name__ == "__main__":
    main()

"""F1 of a model that learns a new entity type from sentences in which only that type is marked, by seed.

    python experiments/growing_labels.py --data PATH/people_daily --encoder linear --solver adagrad --new 3000
    python experiments/growing_labels.py --data PATH/people_daily --encoder cnn --first 500 --new 750 --seeds 0

The corpus is the People's Daily; a seed draws its sentences. In the first 2,000 training sentences (`--first`) persons
and locations are marked, in the next N organizations alone (`--new N`). The validation sets are 250 sentences each of
the validation part, marked in the same way. The test set is the whole test part with all labels. F1 is given for the
old types together and for the new type.

- `old`: trained on the first 2,000 sentences.
- `extended`: `kcrf train --extend` of `old` with the next N. Results of two earlier versions are stored, too: `extended
  with the old vocabulary`, where characters that `old` had not seen stayed unknown, and `extended in 5 epochs`.
- `fine-tuned`: the same start, but what is not marked counts as O: `--marked LOC,ORG,PER`.
- `all labels of the new sentences`: a new model of the next N with all three types marked.
- `all labels`: a new model of all 2,000 + N sentences with all three types marked. Its 2,000 + N sentences have
  organizations, those of `extended` are N.
- `completed`: a new model of all 2,000 + N sentences, in which the types that are not marked are those that `extended`
  predicts: what can be done if the first sentences are still there.

Every run has the defaults of `kcrf train` without copies, but for `--solver` and `--learning-rate`. Results are stored
in experiments/growing_labels.json.
"""

import argparse
import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from results import kept, run_folder, trained

HERE = Path(__file__).parent
OLD, NEW, ALL = ("LOC", "PER"), ("ORG",), ("LOC", "ORG", "PER")
VALID = 250
EXTENDING = ("extended", "fine-tuned")
ROWS = ("old", "extended", "fine-tuned", "all labels of the new sentences", "all labels", "completed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the People's Daily")
    parser.add_argument("--encoder", default="linear")
    parser.add_argument("--solver", help="of linear models [the default of each run]")
    parser.add_argument("--learning-rate", type=float, help="of the models that are extended [the default]")
    parser.add_argument("--first", type=int, default=2000, metavar="N")
    parser.add_argument("--new", type=int, default=2000, metavar="N")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rows", nargs="+", default=ROWS)
    parser.add_argument("--out", default="runs/growing_labels")
    options = parser.parse_args()
    train, *held_out = read_parts(options.data)
    for seed in options.seeds:
        order = np.random.default_rng(seed).permutation(len(train))[: options.first + options.new]
        parts = [train[number] for number in order], *held_out
        for row in options.rows:
            key = key_of(options, row, seed)
            measured = kept(HERE / "growing_labels.json", key, partial(measure, options, parts, row, seed))
            print(key, json.dumps(measured), flush=True)


def read_parts(folder):
    """The sentences of the parts train, dev and test with all labels."""
    from kcrf.corpora import read_conll

    return [read_conll(folder / f"example.{part}") for part in ("train", "dev", "test")]


def key_of(options, row, seed):
    solver = f" {options.solver}" if options.solver else ""
    rate = f" at {options.learning_rate:g}" if options.learning_rate and row in EXTENDING else ""
    return f"{options.encoder}{solver}, {options.first} + {options.new} sentences, {row}{rate}, seed {seed}"


def data_of(row, parts, first):
    """The training set and the validation set of a row."""
    train, valid, _ = parts
    if row == "all labels":
        return train, valid[: 2 * VALID]
    if row == "old":
        return only(OLD, train[:first], valid[:VALID])
    new = train[first:], valid[VALID : 2 * VALID]
    return new if row == "all labels of the new sentences" else only(NEW, *new)


def only(types, *parts):
    """The parts with the entities of some types alone."""
    return [[with_types(sentence, types) for sentence in part] for part in parts]


def with_types(sentence, types):
    """The sentence with the entities of some types alone."""
    return replace(sentence, spans=[span for span in sentence.spans if span[2] in types])


def measure(options, parts, row, seed):
    """F1 of the old types and of the new one on the test set, and the time of training."""
    from kcrf.runs import Settings
    from kcrf.taggers import load_tagger
    from kcrf.training.stages.extension import with_predictions

    def folder(row):
        return run_folder(options.out, key_of(options, row, seed))

    settings = {"seed": seed, "encoder": options.encoder, "solver": options.solver, "augment": 0}
    if row in EXTENDING:
        settings["learning_rate"] = options.learning_rate
        settings["extend"] = str(folder("old"))
        settings["marked"] = ",".join(ALL) if row == "fine-tuned" else None
    else:
        settings["task"] = "ner"
    if row == "completed":
        extended = load_tagger(folder("extended"))
        pairs = zip(data_of("old", parts, options.first), data_of("extended", parts, options.first), strict=True)
        data = [with_predictions(extended, old, NEW) + with_predictions(extended, new, OLD) for old, new in pairs]
    else:
        data = data_of(row, parts, options.first)
    tagger, _, taken = trained(Settings(**settings), data, folder(row))
    return {"old types": f_of(tagger, parts[-1], OLD), "new type": f_of(tagger, parts[-1], NEW), **taken}


def f_of(tagger, sentences, types):
    """F1 of the entities of some types; the predictions of other types are not looked at."""
    from kcrf.metrics import entity_scores

    predicted = tagger.decoder.spans_of(sentences)
    pairs = [[[span for span in row if span[2] in types] for row in (s.spans, p)] for s, p in zip(sentences, predicted)]
    return round(entity_scores(*zip(*pairs, strict=True))["f"] or 0.0, 5)


if __name__ == "__main__":
    main()

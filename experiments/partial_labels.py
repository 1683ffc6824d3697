"""F1 of named entities if only some of the entities of the training set are marked, by seed.

    python experiments/partial_labels.py weibo --data PATH/weibo
    python experiments/partial_labels.py people_daily --data PATH/people_daily

`weibo`: a seed removes half of the entities of the training set, drawn one by one. The validation set and the test set
keep all labels.

- `all labels`: nothing is removed.
- `missing as O`: the removed entities are text without entities, as in files in which only some are marked.
- `missing as ?`: the tags of the removed entities alone are unknown: something says where they were.
- `unmarked as ?`: all text outside of the entities that are left is unknown.
- `estimated`: the files of `missing as O`, with --incomplete.

`people_daily`: a dictionary as labels. 500 sentences, drawn by the seed, have all labels. The names in them are the
dictionary of `kcrf label`, which labels 1,500 others. The test set is the first 1,500 sentences of the test part.

- `500 with labels`: without the others.
- `dictionary, outside`, `dictionary, unknown`: with the others, by `--unmarked outside` and `--unmarked unknown`.
- `dictionary, estimated`: the files of `dictionary, unknown`, with --incomplete.
- `2,000 with labels`: the others with their true labels.

The models are trained with `kcrf train --task ner --encoder linear --solver adagrad`. Results are stored in
experiments/partial_labels.json.
"""

import argparse
import json
import os
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from results import kept, trained

RESULTS = Path(__file__).with_suffix(".json")
LABELED, OTHERS, TEST = 500, 1500, 1500


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", choices=CORPORA)
    parser.add_argument("--data", type=Path, required=True, help="its folder")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--only", nargs="+", help="the names of rows [all]")
    options = parser.parse_args()
    parts = read_parts(options.corpus, options.data)
    for seed in options.seeds:
        for row, make in CORPORA[options.corpus].items():
            if row in (options.only or [row]):
                key = f"{options.corpus}, {row}, seed {seed}"
                print(key, json.dumps(kept(RESULTS, key, partial(measure, parts, make, row, seed))), flush=True)


def read_parts(corpus, folder):
    """The training, validation and test set, lists of `Sentence`s."""
    from kcrf.corpora import read_conll

    paths = [next(path for path in folder.iterdir() if path.suffix == f".{part}") for part in ("train", "dev", "test")]
    train, valid, test = [read_conll(path, repair=corpus == "weibo") for path in paths]
    return (train, valid, test) if corpus == "weibo" else (train, valid[:250], test[:TEST])


def measure(parts, make, row, seed):
    """The scores of one model on the test set, and the number of entities that are marked."""
    from kcrf.runs import Settings

    train, valid, test = make(parts[0], np.random.default_rng(seed)), *parts[1:]
    settings = Settings(task="ner", encoder="linear", solver="adagrad", seed=seed, incomplete="estimated" in row)
    with tempfile.TemporaryDirectory() as folder:
        _, scores, taken = trained(settings, (train, valid, test), f"{folder}/run")
    figures = {name: round(scores["test"][name] or 0.0, 5) for name in ("f", "precision", "recall")}
    return {**figures, "marked": sum(len(sentence.spans) for sentence in train), **taken}


def all_labels(train, random):
    return train


def without_half(unknown):
    """A function that removes half of the entities, and makes "none", "removed" entities or "all" text unknown."""
    from kcrf.corpora.sentences import outside_spans

    def remove(train, random):
        remaining = []
        for sentence in train:
            stays = random.random(len(sentence.spans)) < 0.5
            spans = [span for span, stay in zip(sentence.spans, stays, strict=True) if stay]
            removed = [span[:2] for span, stay in zip(sentence.spans, stays, strict=True) if not stay]
            whole = [(0, len(sentence.text))] if sentence.text else []
            parts = {"none": [], "removed": removed, "all": outside_spans(spans, whole)}
            remaining.append(replace(sentence, spans=spans, unknown=parts[unknown]))
        return remaining

    return remove


def drawn(train, random):
    """The sentences with all labels, and the others with theirs."""
    order = random.permutation(len(train))[: LABELED + OTHERS]
    sentences = [train[number] for number in order]
    return sentences[:LABELED], sentences[LABELED:]


def labeled_alone(train, random):
    return drawn(train, random)[0]


def with_labels(train, random):
    return sum(drawn(train, random), [])


def with_dictionary(unmarked):
    """A function that labels the other sentences with the names of those with all labels, as `kcrf label` does."""
    from kcrf.corpora import label_with_names

    def label(train, random):
        labeled, others = drawn(train, random)
        names = {}
        for sentence in labeled:
            for start, end, label in sentence.spans:
                name = sentence.text[start:end]
                names[name] = label if names.get(name, label) == label else None
        found = label_with_names([sentence.text for sentence in others], names, unmarked)
        return labeled + [replace(other, tokens=one.tokens) for other, one in zip(found, others, strict=True)]

    return label


CORPORA = {
    "weibo": {
        "all labels": all_labels,
        "missing as O": without_half("none"),
        "estimated": without_half("none"),
        "missing as ?": without_half("removed"),
        "unmarked as ?": without_half("all"),
    },
    "people_daily": {
        "500 with labels": labeled_alone,
        "dictionary, outside": with_dictionary("outside"),
        "dictionary, unknown": with_dictionary("unknown"),
        "dictionary, estimated": with_dictionary("unknown"),
        "2,000 with labels": with_labels,
    },
}


if __name__ == "__main__":
    os.environ.setdefault("KERAS_BACKEND", "torch")
    main()

"""F1 of words, and of words with their classes, by one model or by two models one after the other, by seed.

    python experiments/words_with_classes.py --gsd FOLDER --work runs/words_with_classes [--encoders linear cnn]

FOLDER has train.conll, dev.conll and test.conll of UD Chinese GSD. All models are trained from scratch with the
defaults of `kcrf train`; the epoch is chosen on dev.conll. `one model` is --task cws-pos. `two models` are --task cws,
and --task pos, which was trained on gold words and tags the words of the first. `words alone` is --task cws. The
classes are UPOS, or with --column XPOS the 42 finer ones. Results are stored in experiments/words_with_classes.json; a
stopped experiment resumes after the last complete epoch.
"""

import argparse
import json
import os
from functools import partial
from pathlib import Path

from results import kept, run_folder, trained

RESULTS = Path(__file__).with_suffix(".json")
FIGURES = ("f", "oov_recall", "joint_f")
ENCODERS = {
    "linear": {"encoder": "linear"},
    "linear in steps": {"encoder": "linear", "solver": "adagrad"},  # the default of --task cws-pos at this size
    "cnn": {},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gsd", required=True, type=Path)
    parser.add_argument("--work", required=True, type=Path, help="the folder of the run folders")
    parser.add_argument("--encoders", nargs="+", default=["linear", "cnn"], choices=ENCODERS)
    parser.add_argument("--models", nargs="+", default=["one model", "two models"], choices=MODELS)
    parser.add_argument("--column", default="UPOS", choices=["UPOS", "XPOS"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options = parser.parse_args()
    for encoder in options.encoders:
        for seed in options.seeds:
            for models in options.models:
                measure = MODELS[models]
                key = f"{encoder}, {options.column}, {models}, seed {seed}"
                print(key, json.dumps(kept(RESULTS, key, partial(measure, options, encoder, seed))), flush=True)


def one_model(options, encoder, seed):
    """The scores of a model of --task cws-pos."""
    _, scores, taken = train(options, "cws-pos", encoder, seed)
    return {**figures(scores["test"]), **taken}


def two_models(options, encoder, seed):
    """The scores of a model of --task pos on the words of a model of --task cws."""
    from kcrf.corpora.tagged import tags_of_tokens
    from kcrf.metrics import tagged_word_scores
    from kcrf.taggers import TokenTagger, WordSegmenter

    taken = [train(options, task, encoder, seed)[2] for task in ("cws", "pos")]
    train_part, _, test = read_parts(options, "cws-pos")
    words = WordSegmenter(run(options, "cws", encoder, seed), keep_latin=False).segment_batch([s.text for s in test])
    tags = TokenTagger(run(options, "pos", encoder, seed)).tag_batch(words)
    gold = [list(zip(words_of(sentence), tags_of_tokens(sentence), strict=True)) for sentence in test]
    found = [list(zip(*pair, strict=True)) for pair in zip(words, tags, strict=True)]
    known = {word for sentence in train_part for word in words_of(sentence)}
    seconds = [one["processor_seconds"] for one in taken]
    total = {"processor_seconds": None if None in seconds else sum(seconds), "backend": taken[0]["backend"]}
    return {**figures(tagged_word_scores(gold, found, known)), **total}


def words_alone(options, encoder, seed):
    """The scores of a model of --task cws."""
    _, scores, taken = train(options, "cws", encoder, seed)
    return {**figures(scores["test"]), **taken}


MODELS = {"one model": one_model, "two models": two_models, "words alone": words_alone}


def train(options, task, encoder, seed):
    from kcrf.runs import Settings

    settings = Settings(task=task, seed=seed, **ENCODERS[encoder])
    return trained(settings, read_parts(options, task), run(options, task, encoder, seed))


def run(options, task, encoder, seed):
    return run_folder(options.work, f"{encoder}, {options.column}, {task}, seed {seed}")


def read_parts(options, task):
    from kcrf.tasks import task_of

    reading = {"column": options.column, "strip_tags": False}
    return [task_of(task).read_file(options.gsd / f"{part}.conll", reading) for part in ("train", "dev", "test")]


def words_of(sentence):
    return [sentence.text[start:end] for start, end in sentence.tokens]


def figures(scores):
    return {name: round(scores[name], 4) for name in FIGURES if name in scores}


if __name__ == "__main__":
    os.environ.setdefault("KERAS_BACKEND", "torch")
    main()

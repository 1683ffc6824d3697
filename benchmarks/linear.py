"""F1 and processor time of models from scratch next to python-crfsuite: linear, a network, and averages of both.

    python benchmarks/linear.py --data FOLDER --work runs/linear [--corpora pku ...] [--sizes 100 ...] [--seeds 0 1 2]
    python benchmarks/linear.py --table

FOLDER has cws/pfr199801, cws/sighan2005, cws/ud_gsd, ner/people_daily, ner/weibo and ner/wnut17. Models are trained
on the first sentences of the training set; the validation set, the corpus' own or a tenth, is no larger. CRFsuite
(python-crfsuite, L1 0.1, L2 0.01, until it converges) gets the same n-grams without the lexicon; the validation set is
added to none. L-BFGS, which trains the small linear models, and CRFsuite have no seed: one run is enough. jieba, where
it is installed, has its own dictionary, of another standard. Processor seconds are those of training, with the
features, and of kcrf also those of scoring the validation and the test set. Results are kept in benchmarks/linear.json,
so an interrupted benchmark goes on.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1] / "experiments"))
from results import kept

RESULTS = Path(__file__).with_suffix(".json")
SYSTEMS = {
    "default": {},
    "copies": {"augment": 3, "augment_by": "mentions"},
    "no copies": {"augment": 0},
    "weight 0": {"augment": 0, "linear_weight": 0.0},
    "weight 0.3": {"augment": 0, "linear_weight": 0.3},
    "no n-grams": {"augment": 0, "ngrams": False},
    "linear": {"encoder": "linear"},
    "linear no copies": {"encoder": "linear", "augment": 0},
    "linear no lexicon": {"encoder": "linear", "lexicon": False},
    "linear copies": {"encoder": "linear", "augment": 3, "augment_by": "mentions"},
}
OTHERS = ("crfsuite", "jieba")
PARTS = {
    "people_daily": ("people_daily/example.train", "people_daily/example.dev", "people_daily/example.test"),
    "weibo": tuple(f"weibo/weiboNER_2nd_conll.{part}" for part in ("train", "dev", "test")),
    "wnut17": (
        "wnut17/train/wnut17train.conll",
        "wnut17/dev/emerging.dev.conll",
        "wnut17/test/emerging.test.annotated",
    ),
}
CORPORA = ("pku", "gsd", *PARTS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--work", type=Path, help="the folder of the run folders")
    parser.add_argument("--corpora", nargs="+", choices=CORPORA, default=CORPORA)
    parser.add_argument("--systems", nargs="+", choices=(*SYSTEMS, *OTHERS), default=(*SYSTEMS, *OTHERS))
    parser.add_argument("--sizes", nargs="+", type=int, default=[100, 300, 1000, 0], help="sentences; 0 for all")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--table", action="store_true", help="print the results that are kept")
    options = parser.parse_args()
    if options.table:
        return print(table(json.loads(RESULTS.read_text(encoding="utf-8"))))
    if options.data is None or options.work is None:
        parser.error("needs --data FOLDER and --work FOLDER, or --table")
    for corpus in options.corpora:
        parts = read_parts(options.data, corpus)
        for size in options.sizes:
            for system in options.systems:
                for seed in options.seeds if system in SYSTEMS else [0]:
                    key = f"{corpus}, {size or 'all'}, {system}, {seed}"
                    limited = (parts[0][: size or None], parts[1][: max(size, 100) if size else None], parts[2])
                    measure = partial(measured, options.work / key.replace(", ", "-"), corpus, system, seed, limited)
                    print(key, json.dumps(kept(RESULTS, key, measure)), flush=True)


def read_parts(data, corpus):
    """Training, validation and test set, lists of sentences."""
    from kcrf.corpora import read_conll, read_segmented, split

    def words(path):
        return [words for words in read_segmented(data / "cws" / path) if words]

    if corpus == "gsd":
        return tuple(words(f"ud_gsd/{part}.conll") for part in ("train", "dev", "test"))
    if corpus == "pku":
        return (*split(words("pfr199801/train.utf8"), 0.1, 0), words("sighan2005/pku_test_gold.utf8"))
    return tuple(read_conll(data / "ner" / path, repair=True) for path in PARTS[corpus])


def measured(out, corpus, system, seed, parts):
    """The scores of a system, and the processor seconds of its training and of the scores."""
    task = "cws" if corpus in ("pku", "gsd") else "ner"
    if system == "jieba":
        return jieba_scores(parts) if task == "cws" else None
    if system == "crfsuite":
        return crfsuite_scores(task, parts)
    from kcrf.runs import Settings
    from kcrf.training import train_tagger

    began = time.process_time()
    _, scores = train_tagger(Settings(task=task, seed=seed, **SYSTEMS[system]), *parts, out=out, overwrite=True)
    seconds = time.process_time() - began
    shutil.rmtree(out)
    return {**figures(scores["test"]), **on_valid(scores["valid"]), "processor_seconds": round(seconds, 1)}


def on_valid(scores):
    """The figures on the validation set, by which defaults are chosen."""
    return {f"valid_{name}": figure for name, figure in figures(scores).items()}


def figures(scores):
    return {name: round(scores[name], 4) for name in ("f", "oov_recall") if scores.get(name) is not None}


def jieba_scores(parts):
    try:
        import jieba
    except ImportError:
        return None
    from kcrf.metrics import segmentation_scores

    train, _, test = parts
    found = [jieba.lcut("".join(words)) for words in test]
    return figures(segmentation_scores(test, found, {word for words in train for word in words}))


def crfsuite_scores(task, parts):
    """The scores of python-crfsuite with the n-grams of `kcrf.readers` as strings."""
    import pycrfsuite

    from kcrf.metrics import entity_scores
    from kcrf.readers import CharacterReader, WordReader, tags_of_units
    from kcrf.readers.word_tokens import choose_units
    from kcrf.tags import bio, bmes
    from kcrf.tasks.task import as_sentence

    train, *scored = ([as_sentence(item) for item in part] for part in parts)
    by_words = task == "ner" and choose_units(train) == "words"
    reader = WordReader.of(train) if by_words else CharacterReader(None)
    scheme = bmes() if task == "cws" else bio(sorted({span[2] for sentence in train for span in sentence.spans}))
    began = time.process_time()
    trainer = pycrfsuite.Trainer(verbose=False)
    for sentence, units in zip(train, units_of(reader, train), strict=True):
        if len(units):
            tags = tags_of_units(scheme, units, sentence.spans)
            trainer.append(features(sentence.text, units, by_words), [scheme.labels[tag] for tag in tags])
    trainer.set_params({"c1": 0.1, "c2": 0.01})
    with tempfile.TemporaryDirectory() as folder:
        trainer.train(f"{folder}/model")
        seconds = time.process_time() - began
        tagger = pycrfsuite.Tagger()
        tagger.open(f"{folder}/model")
        found = [
            [tag(tagger, scheme, *pair, by_words) for pair in zip(part, units_of(reader, part), strict=True)]
            for part in scored
        ]
    valid, test = (
        entity_scores([sentence.spans for sentence in part], spans)
        if task == "ner"
        else scores_of_words(parts[0], part, spans)
        for part, spans in zip(scored, found, strict=True)
    )
    return {**figures(test), **on_valid(valid), "processor_seconds": round(seconds, 1)}


def scores_of_words(train, sentences, found):
    """Segmentation scores of the spans that were found in sentences."""
    from kcrf.metrics import segmentation_scores

    words = [[item.text[start:end] for start, end in spans] for item, spans in zip(sentences, found, strict=True)]
    gold = [[item.text[start:end] for start, end in item.spans] for item in sentences]
    return segmentation_scores(gold, words, {word for sentence in train for word in sentence})


def units_of(reader, sentences):
    readings = reader.read([sentence.text for sentence in sentences], [sentence.tokens for sentence in sentences])
    return [reading.units for reading in readings]


def tag(tagger, scheme, sentence, units, by_words):
    tags = tagger.tag(features(sentence.text, units, by_words)) if len(units) else []
    spans = scheme.decode([scheme.labels.index(label) for label in tags])
    return [(int(units[start, 0]), int(units[end - 1, 1]), *label) for start, end, *label in spans]


def features(text, units, by_words):
    """The features of each unit, lists of strings."""
    from kcrf.readers.code_points import character_type
    from kcrf.readers.ngrams import CHARACTER_TEMPLATES, WORD_COLUMNS, WORD_TEMPLATES, places_of
    from kcrf.readers.vocabulary import fold_text
    from kcrf.readers.word_tokens import word_features

    tokens = [text[start:end] for start, end in units.tolist()]
    edge = {name: "|" for name in (*WORD_COLUMNS, "c", "t")}
    if by_words:
        rows = [dict(zip(("w", *WORD_COLUMNS[2:]), (fold_text(t), *word_features(t)))) for t in tokens]
        rows = [{**row, "k": f"{t.isupper()}{t.istitle()}{t.isdecimal()}{'-' in t}"} for row, t in zip(rows, tokens)]
    else:
        rows = [{"c": fold_text(token), "t": character_type(token)} for token in tokens]
    rows = [edge, edge, *rows, edge, edge]
    templates = [(name, places_of(name)) for name in (WORD_TEMPLATES if by_words else CHARACTER_TEMPLATES)]
    return [
        [f"{name}={'_'.join(rows[i + place.offset][place.column] for place in places)}" for name, places in templates]
        for i in range(2, len(rows) - 2)
    ]


def table(results):
    """The medians of the seeds in Markdown: F1, recall of OOV words, and processor seconds of training."""
    cells = {}
    for key, result in results.items():
        corpus, size, system, _ = key.split(", ")
        if result is not None:
            cells.setdefault((corpus, size), {}).setdefault(system, []).append(result)
    systems = (*SYSTEMS, "crfsuite")
    lines = [f"| corpus | sentences | {' | '.join(systems)} |", "|---|---|" + "---|" * len(systems)]
    for corpus, size in sorted(cells, key=lambda c: (CORPORA.index(c[0]), c[1] == "all", len(c[1]), c[1])):
        row = cells[corpus, size]
        lines.append(f"| {corpus} | {size} | {' | '.join(in_words(row.get(system, [])) for system in systems)} |")
    return "\n".join(lines)


def in_words(results):
    """One cell of the table."""
    if not results:
        return ""
    medians = {
        name: median(result[name] for result in results)
        for name in ("f", "oov_recall", "processor_seconds")
        if name in results[0]
    }
    recall = f" ({medians['oov_recall']:.3f})" if "oov_recall" in medians else ""
    seeds = f", {len(results)} seeds" if len(results) > 1 else ""
    return f"{medians['f']:.3f}{recall}, {medians['processor_seconds']:.0f} s{seeds}"


if __name__ == "__main__":
    os.environ.setdefault("KERAS_BACKEND", "torch")
    main()

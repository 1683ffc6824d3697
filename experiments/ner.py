"""F1 of named entities on public corpora, for all types together and for each type, by seed.

    python experiments/ner.py people_daily --data people_daily
    python experiments/ner.py weibo --data weibo
    python experiments/ner.py wnut17 --data wnut17 --bert all-MiniLM-L6-v2
    python experiments/ner.py wnut17_scratch --data wnut17
    python experiments/ner.py conll2003 --data conll2003/en
    python experiments/ner.py wikineural --data wikineural/data/wikineural/en

Every run is `kcrf train --task ner` with the defaults of version 0.1.0, except for the settings in CORPORA and the
seed; the rows "words" have those of this version, some without n-grams, which came later. The epoch is chosen on the
validation set. The test set is scored with the entities of the best path, and with those of `--min-probability X` for
each X in CONFIDENCES. The best X is chosen on the validation set, by the mean of `valid_f` over the seeds. `--only
NAME` runs one row, `--dev` skips the test set. Results are stored in experiments/ner_<corpus>.json; a stopped
experiment resumes after the last complete epoch.

CoNLL 2003 is not free; the script reads its usual files train.txt, valid.txt and test.txt. WikiNEuRal
(github.com/Babelscape/wikineural) is English with automatic labels. The script uses as many sentences as CoNLL 2003
has: 14,041 for training, 3,250 for validation and 3,453 for testing.
"""

import argparse
import json
import os
from functools import partial
from pathlib import Path

from results import DEFAULTS_0_1, kept, run_folder, trained

HERE = Path(__file__).parent
CONFIDENCES = (0.2, 0.25, 0.3, 0.4)
SMALL_BERT = {
    "constraints": False,
    "learning_rate": 3e-4,
    "layerwise_decay": 0.8,
    "epochs": 3,
    "word_case": True,
}  # chosen on dev
CORPORA = {  # whether the labels break their scheme and need `repair`, and the settings of each row
    "people_daily": (False, {"cnn": DEFAULTS_0_1}),
    "weibo": (True, {"cnn": {**DEFAULTS_0_1, "scheme": "bioes", "width": 128, "batch_size": 16, "epochs": 12}}),
    "wnut17": (False, {"all layers": SMALL_BERT, "top layer anew": {**SMALL_BERT, "skip_top_layers": 1}}),
    "wnut17_scratch": (
        False,
        {
            "characters": {**DEFAULTS_0_1, "units": "characters"},
            "words": {},
            "words, short": {"ngrams": False, "epochs": 12, "width": 128},
        },
    ),
    "conll2003": (False, {"words": {}}),
    "wikineural": (
        True,
        {
            "characters": {**DEFAULTS_0_1, "units": "characters"},
            "words": {"ngrams": False},
            "words, 8 epochs": {
                "ngrams": False,
                "units": "words",
                "epochs": 8,
                "batch_size": 32,
                "crf_lr_multiplier": 10.0,
            },
        },
    ),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", choices=CORPORA)
    parser.add_argument("--data", required=True, help="the folder of the corpus")
    parser.add_argument("--bert", help="the folder of a BERT")
    parser.add_argument("--only", help="one row")
    parser.add_argument("--dev", action="store_true", help="do not score the test part")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", default="runs/ner")
    options = parser.parse_args()
    path = HERE / f"ner_{options.corpus}{'_dev' if options.dev else ''}.json"
    *_, rows = CORPORA[options.corpus]
    for seed in options.seeds:
        for name in [options.only] if options.only else rows:
            key = f"{name}, seed {seed}"
            folder = run_folder(Path(options.out) / options.corpus, key)
            settings = {"seed": seed, "bert": options.bert, **rows[name]}
            print(key, json.dumps(kept(path, key, partial(measure, options, settings, folder))), flush=True)


def files_of(corpus, folder):
    """The paths of the parts train, dev and test, under the names of `kcrf download` or of their publishers."""
    from kcrf.corpora.downloads import CORPORA as PUBLIC

    corpus = corpus.removesuffix("_scratch")
    if corpus == "conll2003":
        return [folder / f"{part}.txt" for part in ("train", "valid", "test")]
    if corpus not in PUBLIC:
        return [folder / f"example.{part}" for part in ("train", "dev", "test")]
    names = [file[:2] for file in PUBLIC[corpus].each_file()]
    return [folder / (here if (folder / here).exists() else there) for here, there in names]


def read_parts(corpus, folder, repair):
    """The sentences of the parts train, dev and test."""
    from kcrf.corpora import read_conll, read_lines

    if corpus != "wikineural":
        return [read_conll(path, repair=repair) for path in files_of(corpus, folder)]
    paths = [folder / "val.conllu", folder / "test.conllu"]
    lines = [[line.partition("\t")[2] for line in read_lines(path)] for path in paths]  # without the position
    val, test = (read_conll(path, -1, repair, rows) for path, rows in zip(paths, lines))
    return [(val + test)[:14041], (val + test)[14041:17291], test[-3453:]]


def measure(options, settings, out):
    """The scores of one training run, and its wall time and processor time in seconds."""
    from kcrf.runs import Settings

    parts = read_parts(options.corpus, Path(options.data), repair=CORPORA[options.corpus][0])
    parts = parts[:2] if options.dev else parts
    tagger, scores, taken = trained(Settings(task="ner", **settings), parts, out)
    figures = scores.get("test", scores["valid"])
    return {
        **_rounded(figures),
        "at_confidence": {least: at_confidence(tagger, parts, least) for least in CONFIDENCES},
        "macro_f": round(figures["macro"]["f"], 5),
        "f_by_type": {label: round(of_type["f"], 5) for label, of_type in figures["types"].items()},
        "valid_f": round(scores["valid"]["f"], 5),
        "settings": {name: value for name, value in settings.items() if name not in ("seed", "bert")},
        "parameters": tagger.model.count_params(),
        "load": round(os.getloadavg()[1], 1),
        **taken,
    }


def at_confidence(tagger, parts, least):
    """The scores of the same model with `--min-probability`."""
    tagger.decoder.min_probability = least
    return {**_rounded(tagger.scores(parts[-1])), "valid_f": round(tagger.scores(parts[1])["f"], 5)}


def _rounded(figures):
    return {name: round(figures[name], 5) for name in ("f", "precision", "recall")}


if __name__ == "__main__":
    main()

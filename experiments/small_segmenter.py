"""Small, fast segmenters distilled from the default one, networks and a linear model: F1, and speed beside the teacher.

    python experiments/small_segmenter.py --data FOLDER --teacher runs/pku --out runs/small [--only ROW ...]

The teacher is a run of `kcrf train` on PFR 1998-01 with the defaults. FOLDER contains pfr199801/train.utf8,
pfr199801-02/all.utf8 and sighan2005/pku_test_gold.utf8. The students are trained on the teacher's training set. The
unlabeled texts are those of the second file that occur neither in January nor in the test set. Speed is characters per
second of processor time on the test set, with teacher and student in turn, the best of five. Results are stored in
experiments/small_segmenter.json; a stopped experiment resumes after the last complete epoch.
"""

import argparse
import json
import time
from functools import partial
from pathlib import Path

from results import kept, run_folder, trained

RESULTS = Path(__file__).with_suffix(".json")
SMALL = {"width": 64, "depth": 2, "character_width": 64, "bigram_width": 32, "lexicon": False}
STUDENT = {**SMALL, "dropout": 0.1, "learning_rate": 2e-3, "epochs": 8, "linear_weight": 0.0}
ROWS = {  # settings; whether with a teacher, with texts without labels
    "labels": (STUDENT, False, False),
    "teacher": (STUDENT, True, False),
    "teacher and texts without labels": ({**STUDENT, "epochs": 12}, True, True),
    "linear, labels": ({"encoder": "linear"}, False, False),
    "linear, teacher": ({"encoder": "linear"}, True, False),
    "linear, teacher and texts without labels": ({"encoder": "linear"}, True, True),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--teacher", required=True, help="a run folder")
    parser.add_argument("--out", default="runs/small", help="the folder of the run folders")
    parser.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS))
    options = parser.parse_args()
    print("default", json.dumps(kept(RESULTS, "default", partial(measure_teacher, options))), flush=True)
    for row in options.only:
        print(row, json.dumps(kept(RESULTS, row, partial(measure, options, row))), flush=True)


def measure_teacher(options):
    from kcrf.runs import read_run

    return figures(read_run(options.teacher).scores)


def measure(options, row):
    """Trains a student; its scores, size and speed."""
    from kcrf.runs import Settings
    from kcrf.taggers import load_tagger

    settings, has_teacher, has_texts = ROWS[row]
    settings = Settings(**settings, teacher=options.teacher if has_teacher else None)
    parts, texts = read_parts(options.data)
    out = run_folder(options.out, row)
    more = {"unlabeled": texts} if has_texts else {}
    tagger, scores, taken = trained(settings, parts, out, **more)
    speeds = characters_a_second(options.data, load_tagger(options.teacher), tagger)
    of_teacher = {"teacher_test_f": measure_teacher(options)["test_f"]} if has_teacher else {}
    return {**figures(scores), "parameters": parameters(tagger), **of_teacher, **speeds, **taken}


def parameters(tagger):
    """The number of weights of a network or of a linear model."""
    from kcrf.networks.linear_networks import LinearTaggingNetwork

    if isinstance(tagger.network, LinearTaggingNetwork):
        return tagger.network.model.scores.size + tagger.network.model.transitions.size
    return tagger.model.count_params()


def figures(scores):
    return {
        f"{part}_{name}": round(scores[part][name], 4) for part in ("valid", "test") for name in ("f", "oov_recall")
    }


def read_parts(data):
    """Training, held-out and test part, and the texts without labels."""
    from kcrf.corpora import read_segmented, split

    january, test = (read(data / name) for name in ("pfr199801/train.utf8", "sighan2005/pku_test_gold.utf8"))
    train, valid = split(january, 0.1, 0)
    labeled = {"".join(words) for words in (*january, *test)}
    texts = ("".join(words) for words in read_segmented(data / "pfr199801-02/all.utf8"))
    return (train, valid, test), [text for text in dict.fromkeys(texts) if text and text not in labeled]


def read(path):
    from kcrf.corpora import read_segmented

    return [words for words in read_segmented(path) if words]


def characters_a_second(data, teacher, student):
    """Characters a second of processor time of both, and the ratio."""
    texts = ["".join(words) for words in read(data / "sighan2005/pku_test_gold.utf8")]
    seconds = {"teacher": [], "student": []}
    for tagger in (teacher, student):
        tagger.segment_batch(texts[:300])
    for _ in range(5):
        for name, tagger in (("teacher", teacher), ("student", student)):
            began = time.process_time()
            tagger.segment_batch(texts)
            seconds[name].append(time.process_time() - began)
    best = {name: min(taken) for name, taken in seconds.items()}
    speeds = {f"characters_a_second_{name}": round(sum(map(len, texts)) / taken) for name, taken in best.items()}
    return {**speeds, "times_as_fast": round(best["teacher"] / best["student"], 1)}


if __name__ == "__main__":
    main()

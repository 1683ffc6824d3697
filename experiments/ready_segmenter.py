"""Makes the segmenters that come with kcrf, in kcrf/taggers/data/zh_gsd, and measures them.

    python experiments/ready_segmenter.py --gsd FOLDER --pku pku_test_gold.utf8 --work runs/ready [--linear]

The first folder has train.conll, dev.conll and test.conll of UD Chinese GSD (CC BY-SA 4.0); nothing else is
learned from. `WordSegmenter()` uses the linear models, that of words, and with `with_labels=True` that of words with
universal parts of speech, whose small scores are left out. For comparison, and as an example of the format, a model
with the defaults teaches a small one, which is exported to ONNX with integers of 8 bits, for which TensorFlow is
needed. Only the linear ones are made with --linear. Results are kept in experiments/ready_segmenter.json.
"""

import argparse
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
from results import kept, trained

RESULTS = Path(__file__).with_suffix(".json")
HERE = Path(__file__).parents[1] / "kcrf" / "taggers" / "data" / "zh_gsd"
ONNX = Path(__file__).parents[1] / "examples" / "segmenter.onnx"
SMALL = {"width": 64, "depth": 2, "character_width": 64, "bigram_width": 32, "dropout": 0.1, "learning_rate": 2e-3}
STUDENTS = {"lexicon": {**SMALL, "epochs": 16}, "no lexicon": {**SMALL, "epochs": 16, "lexicon": False}}
CHOSEN = "lexicon"
LEAST = 6
SIGNS = "。，、；：？！∶．,.:;?!“”（）()《》…—～·％%"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gsd", required=True, type=Path)
    parser.add_argument("--pku", required=True, type=Path, help="the test part of PKU, another standard")
    parser.add_argument("--work", required=True, type=Path, help="the folder of the run folders")
    parser.add_argument("--linear", action="store_true", help="make the linear models alone")
    options = parser.parse_args()
    print("tagged", json.dumps(kept(RESULTS, "tagged", partial(train_tagged, options))), flush=True)
    print("linear", json.dumps(kept(RESULTS, "linear", partial(train_linear, options))), flush=True)
    if options.linear:
        return
    print("teacher", json.dumps(kept(RESULTS, "teacher", partial(train, options, "teacher", {}))), flush=True)
    for name, settings in STUDENTS.items():
        settings = {**settings, "teacher": str(options.work / "teacher")}
        print(name, json.dumps(kept(RESULTS, name, partial(train, options, name, settings))), flush=True)
    install(options.work / CHOSEN)
    print("onnx", json.dumps(kept(RESULTS, "onnx", partial(measure, options, ONNX))), flush=True)


def train_linear(options):
    from kcrf.export import export_model

    result = train(options, "linear", {"encoder": "linear", "solver": "adagrad"})
    export_model(options.work / "linear", HERE / "model.npz")
    return {**result, **measure(options, HERE / "model.npz")}


def train_tagged(options):
    """Trains the model of words with classes; its scores before and after small scores are left out."""
    from kcrf.export import export_model
    from kcrf.taggers import load_tagger

    path = HERE / "tagged.npz"
    result = train(options, "tagged", {"encoder": "linear", "task": "cws-pos"})
    export_model(options.work / "tagged", path)
    leave_out_small_scores(path)
    scores = load_tagger(path).scores(read_parts(options, "cws-pos")[2])
    exported = {f"exported_{name}": round(scores[name], 4) for name in ("f", "joint_f")}
    return {**result, **exported, **measure(options, path)}


def leave_out_small_scores(path):
    """Sets the scores of an exported linear model that are below `LEAST`, of 127, to 0: the file is half as large."""
    with np.load(path) as file:
        arrays = dict(file)
    arrays["scores"][np.abs(arrays["scores"].astype("int16")) < LEAST] = 0
    np.savez_compressed(path, **arrays)


def read_parts(options, task):
    """The training, validation and test sets of a task."""
    from kcrf.tasks import task_of

    paths = (options.gsd / f"{part}.conll" for part in ("train", "dev", "test"))
    return [task_of(task).read_file(path, {"column": "UPOS"}) for path in paths]


def train(options, name, settings):
    from kcrf.runs import Settings

    parts = read_parts(options, settings.get("task", "cws"))
    tagger, scores, taken = trained(Settings(**settings), parts, options.work / name)
    names = [name for name in ("f", "joint_f", "oov_recall") if name in scores["test"]]
    figures = {f"{part}_{x}": round(scores[part][x], 4) for part in ("valid", "test") for x in names}
    size = np.size(tagger.model.scores) if settings.get("encoder") == "linear" else tagger.model.count_params()
    return {**figures, "parameters": size, **taken}


def install(run):
    """Writes the exported file."""
    HERE.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "kcrf", "export", str(run), "--out", str(ONNX), "--int8"]
    subprocess.run(command, check=True)


def measure(options, path):
    """F1 on both test parts, the calibration error, the share of signs that are words of their own; bytes."""
    from kcrf.corpora import read_segmented
    from kcrf.metrics import segmentation_scores
    from kcrf.taggers import WordSegmenter

    train = {word for words in read_segmented(options.gsd / "train.conll") for word in words}
    gold = {"gsd": read_segmented(options.gsd / "test.conll"), "pku": read_segmented(options.pku)}
    segmenter, result = WordSegmenter(path), {"bytes": path.stat().st_size}
    for name, sentences in gold.items():
        sentences = [words for words in sentences if words]
        texts = ["".join(words) for words in sentences]
        found = segmenter.segment_batch(texts)
        scores = segmentation_scores(sentences, found, train)
        result[name] = {x: round(scores[x], 4) for x in ("f", "precision", "recall", "oov_recall")}
        result[name]["calibration_error"] = round(calibration_error(segmenter, sentences, texts), 4)
        alone, right = (sum(word == "。" for words in rows for word in words) for rows in (found, sentences))
        result[name]["full_stops_alone"] = f"{alone} of {right}"
    result["signs_alone"] = signs_alone(segmenter, [text for text in texts if len(text) >= 40][:100])
    return result


def signs_alone(segmenter, texts):
    """The share of signs that are words of their own where each stands between Chinese characters of each text."""
    pairs = [(sign, text[:20] + sign + text[20:40]) for sign in SIGNS for text in texts]
    rows = segmenter.segment_batch([text for _, text in pairs])
    return round(sum(sign in row for (sign, _), row in zip(pairs, rows, strict=True)) / len(pairs), 4)


def calibration_error(segmenter, gold, texts):
    """The expected calibration error of the words found."""
    from kcrf.metrics import calibration

    pairs = []
    for words, found in zip(gold, segmenter(texts), strict=True):
        known = set(places(words))
        pairs += [(span.probability, (span.start, span.end) in known) for span in found]
    return calibration(*zip(*pairs, strict=True))[1]


def places(words):
    start = 0
    for word in words:
        yield start, start + len(word)
        start += len(word)


if __name__ == "__main__":
    os.environ.setdefault("KERAS_BACKEND", "torch")
    main()

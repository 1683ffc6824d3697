"""Makes the segmenter that comes with kcrf, in kcrf/taggers/data/zh_gsd, and measures it.

    python experiments/ready_segmenter.py --gsd FOLDER --pku pku_test_gold.utf8 --work runs/ready

The first folder has train.conll, dev.conll and test.conll of UD Chinese GSD (CC BY-SA 4.0); nothing else is
learnt from. A model with the defaults teaches a small one, which is exported with integers of 8 bits. Results are kept
in experiments/ready_segmenter.json. Needs TensorFlow, for the export.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

from results import kept, trained

RESULTS = Path(__file__).with_suffix(".json")
HERE = Path(__file__).parents[1] / "kcrf" / "taggers" / "data" / "zh_gsd"
SMALL = {"width": 64, "depth": 2, "character_width": 64, "bigram_width": 32, "dropout": 0.1, "learning_rate": 2e-3}
STUDENTS = {"lexicon": {**SMALL, "epochs": 16}, "no lexicon": {**SMALL, "epochs": 16, "lexicon": False}}
CHOSEN = "lexicon"
FILES = ("config.json", "vocabulary.json", "model.weights.h5")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gsd", required=True, type=Path)
    parser.add_argument("--pku", required=True, type=Path, help="the test part of PKU, another standard")
    parser.add_argument("--work", required=True, type=Path, help="the folder of the run folders")
    options = parser.parse_args()
    print("teacher", json.dumps(kept(RESULTS, "teacher", partial(train, options, "teacher", {}))), flush=True)
    for name, settings in STUDENTS.items():
        settings = {**settings, "teacher": str(options.work / "teacher")}
        print(name, json.dumps(kept(RESULTS, name, partial(train, options, name, settings))), flush=True)
    install(options.work / CHOSEN)
    print("ready", json.dumps(kept(RESULTS, "ready", partial(measure, options))), flush=True)


def train(options, name, settings):
    from kcrf.corpora import read_segmented
    from kcrf.runs import Settings

    parts = [read_segmented(options.gsd / f"{part}.conll") for part in ("train", "dev", "test")]
    tagger, scores, taken = trained(Settings(**settings), parts, options.work / name)
    figures = {f"{part}_{x}": round(scores[part][x], 4) for part in ("valid", "test") for x in ("f", "oov_recall")}
    return {**figures, "parameters": tagger.model.count_params(), **taken}


def install(run):
    """Writes the exported file, and for users without onnxruntime the run with weights of 16 bits."""
    import h5py

    from kcrf.runs import RunFolder

    HERE.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        shutil.copy(run / name, HERE / name)
    config = RunFolder(run).read_config().published().to_json()
    (HERE / "config.json").write_text(json.dumps(config, indent=1))
    with h5py.File(run / "model.weights.h5") as old, h5py.File(HERE / "model.weights.h5", "w") as new:
        old.visititems(partial(_copy_in_16_bits, new))
    command = [sys.executable, "-m", "kcrf", "export", str(run), "--out", str(HERE / "model.onnx"), "--int8"]
    subprocess.run(command, check=True)


def _copy_in_16_bits(new, name, item):
    if hasattr(item, "shape"):
        new.create_dataset(name, data=item[()].astype("float16"), **({"compression": "gzip"} if item.shape else {}))
    else:
        new.require_group(name)


def measure(options):
    """F1 on both test parts, of both files; the calibration error; bytes."""
    from kcrf.corpora import read_segmented
    from kcrf.metrics import segmentation_scores
    from kcrf.taggers import WordSegmenter

    train = {word for words in read_segmented(options.gsd / "train.conll") for word in words}
    gold = {"gsd": read_segmented(options.gsd / "test.conll"), "pku": read_segmented(options.pku)}
    result = {"bytes": {path.name: path.stat().st_size for path in HERE.iterdir() if path.name != "README.md"}}
    for kind, path in (("onnx", HERE / "model.onnx"), ("keras", HERE)):
        segmenter = WordSegmenter(path)
        for name, sentences in gold.items():
            sentences = [words for words in sentences if words]
            texts = ["".join(words) for words in sentences]
            scores = segmentation_scores(sentences, segmenter.segment_batch(texts), train)
            result[f"{kind} {name}"] = {x: round(scores[x], 4) for x in ("f", "precision", "recall", "oov_recall")}
            result[f"{kind} {name}"]["calibration_error"] = round(calibration_error(segmenter, sentences, texts), 4)
    return result


def calibration_error(segmenter, gold, texts):
    """The expected calibration error of the words found."""
    from kcrf.metrics import calibration

    pairs = []
    for words, found in zip(gold, segmenter.segment_batch(texts, confidence=True), strict=True):
        known = {span[:2] for span in places((word, 1.0) for word in words)}
        pairs += [(confidence, (start, end) in known) for start, end, confidence in places(found)]
    return calibration(*zip(*pairs, strict=True))[1]


def places(words):
    start = 0
    for word, confidence in words:
        yield start, start + len(word), confidence
        start += len(word)


if __name__ == "__main__":
    os.environ.setdefault("KERAS_BACKEND", "torch")
    main()

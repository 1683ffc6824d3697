"""Compares an exported segmenter with its run folder: identical segmentations, probabilities, and F1.

    python experiments/exported_models.py --run runs/pku --texts train.utf8 test.utf8 --sentences 10000

The run is exported as ONNX, in float32 and in int8, which needs TensorFlow. All three models segment the last sentences
of the texts; the run folder runs on the backend of KERAS_BACKEND. Results are stored in
experiments/exported_models.json.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from kcrf.corpora import read_segmented
from kcrf.metrics import segmentation_scores
from kcrf.taggers import WordSegmenter

RESULTS = Path(__file__).with_suffix(".json")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", required=True)
    parser.add_argument("--texts", type=Path, nargs="+", required=True)
    parser.add_argument("--sentences", type=int, default=10_000)
    options = parser.parse_args()
    gold = [words for path in options.texts for words in read_segmented(path) if words][-options.sentences :]
    texts = ["".join(words) for words in gold]
    with tempfile.TemporaryDirectory() as folder:
        models = {"run folder": options.run}
        for name, flags in (("onnx", []), ("onnx int8", ["--int8"])):
            models[name] = f"{folder}/{len(models)}.onnx"
            command = [sys.executable, "-m", "kcrf", "export", options.run, "--out", models[name], *flags]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        found = {name: WordSegmenter(model)(texts) for name, model in models.items()}
    rows = {"sentences": len(texts)}
    for name, sentences in found.items():
        f = segmentation_scores(gold, [[span.text for span in spans] for spans in sentences])["f"]
        rows[name] = {"f": round(f, 5), **compared(found["run folder"], sentences)}
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(rows, indent=1))


def compared(expected, found):
    """How many sentences are cut alike, and the largest difference of a probability among them."""
    same = [
        pair
        for pair in zip(expected, found, strict=True)
        if [span.key for span in pair[0]] == [span.key for span in pair[1]]
    ]
    differences = (abs(a.probability - b.probability) for pair in same for a, b in zip(*pair, strict=True))
    return {"cut_alike": len(same), "largest_difference_of_a_probability": float(f"{max(differences):.1e}")}


if __name__ == "__main__":
    main()

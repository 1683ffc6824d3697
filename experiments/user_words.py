"""F1 of a segmenter on text from another domain: without a user dictionary, with the dictionary, and with forced words.

    python experiments/user_words.py --model runs/pku --data FOLDER

The model is a run of `kcrf train --task cws` on PFR 1998-01. The text is the test set of UD Chinese GSD. The dictionary
contains the words of two or more characters of its training set. FOLDER contains train.conll and test.conll of
UD_Chinese-GSD. Results are stored in experiments/user_words.json.
"""

import argparse
import json
from collections import Counter
from functools import partial
from pathlib import Path

from results import kept

RESULTS = Path(__file__).with_suffix(".json")
ROWS = {
    "no words": {},
    "words with their counts": {"words": Counter},
    "words": {"words": set},
    "forced words": {"words": set, "force_words": True},
    "letters may be cut": {"keep_latin": False},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="a run folder")
    parser.add_argument("--data", required=True, type=Path)
    options = parser.parse_args()
    for row in ROWS:
        print(row, json.dumps(kept(RESULTS, row, partial(measure, options, row))), flush=True)


def measure(options, row):
    """The scores of the test part, with the words of both parts in the roles that the row says."""
    from kcrf.metrics import segmentation_scores
    from kcrf.taggers import WordSegmenter

    train, test = (words_of(options.data / f"{part}.conll") for part in ("train", "test"))
    counts = Counter(word for words in train for word in words if len(word) > 1)
    arguments = dict(ROWS[row])
    if "words" in arguments:
        arguments["words"] = arguments["words"](counts)
    segmenter = WordSegmenter(options.model, **arguments)
    found = segmenter.segment_batch(["".join(words) for words in test])
    scores = segmentation_scores(test, found, set(counts))
    return {name: round(scores[name], 4) for name in ("f", "precision", "recall", "oov_recall")}


def words_of(path):
    from kcrf.corpora import read_segmented

    return [words for words in read_segmented(path) if words]


if __name__ == "__main__":
    main()

"""A linear segmenter that leaves its uncertain sentences to a network: F1 and speed by the share of the network.

    python experiments/ladder.py --data FOLDER --network runs/pku --linear runs/linear

The runs are those of `kcrf train` on PFR 1998-01, with the defaults and with `--encoder linear`. FOLDER contains
pfr199801/train.utf8, pfr199801-02/all.utf8 and sighan2005/pku_test_gold.utf8. A sentence is as certain as the least
probable of its words. The thresholds leave a tenth, two tenths, ... of the characters of the validation set to the
network. Speed is in processor seconds, compared with the network alone. Results are stored in experiments/ladder.json.
"""

import argparse
import json
import time
from functools import partial
from pathlib import Path

import numpy as np
from results import kept
from small_segmenter import read_parts

RESULTS = Path(__file__).with_suffix(".json")
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--network", required=True, help="a run folder")
    parser.add_argument("--linear", required=True, help="a run folder")
    options = parser.parse_args()
    for name, row in kept(RESULTS, "PFR 1998-01", partial(measure, options)).items():
        print(name, json.dumps(row))


def measure(options):
    """The scores of both models and, by the share that the thresholds leave to the network, of their combination."""
    from kcrf.taggers import load_tagger

    network, linear = load_tagger(options.network), load_tagger(options.linear)
    (_, *parts), _ = read_parts(options.data)
    valid, test = (Part(part, network, linear) for part in parts)
    thresholds = {"linear": 0.0, **{str(share): valid.threshold(share) for share in SHARES}, "network": 1.0}
    return {
        name: {"valid": valid.figures(threshold), "test": test.figures(threshold)}
        for name, threshold in thresholds.items()
    }


class Part:
    """The words that both models find in a list of sentences, how certain the linear model is, and their seconds."""

    def __init__(self, sentences, network, linear):
        self._gold, texts = sentences, ["".join(words) for words in sentences]
        self._sizes = np.array(list(map(len, texts)))
        found, self._linear_seconds = timed(linear, texts)
        self._certainties = np.array([min(span.probability for span in spans) for spans in found])
        self._linear = [[span.text for span in spans] for spans in found]
        self._network, self._network_seconds = timed(network.segment_batch, texts)

    def threshold(self, share):
        """The certainty up to which sentences have this share of the characters."""
        order = np.argsort(self._certainties)
        return self._certainties[order][np.searchsorted(np.cumsum(self._sizes[order]), share * self._sizes.sum())]

    def figures(self, threshold):
        """F1, the share of the characters that the network reads, and how many times as fast as it alone this is."""
        from kcrf.metrics import segmentation_scores

        uses = self._certainties <= threshold
        share = float(self._sizes[uses].sum() / self._sizes.sum())
        mixed = [n if use else one for use, n, one in zip(uses, self._network, self._linear, strict=True)]
        seconds = share * self._network_seconds + (self._linear_seconds if share < 1 else 0)
        return {
            "f": round(segmentation_scores(self._gold, mixed)["f"], 4),
            "share": round(share, 3),
            "times_as_fast": round(self._network_seconds / seconds, 1),
        }


def timed(method, texts):
    """What a method returns for texts, and its processor seconds."""
    began = time.process_time()
    return method(texts), time.process_time() - began


if __name__ == "__main__":
    main()

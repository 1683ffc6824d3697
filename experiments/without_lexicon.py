"""F1 of linear models of words by the weight of a model that is trained without the lexicon.

    python experiments/without_lexicon.py --data FOLDER [--only "pku, 1000" ...]

FOLDER is that of benchmarks/linear.py. A linear model with the lexicon and one without are trained on the first
sentences of the training set, and averaged with several weights. The averages are scored on the validation set, by
which the default was chosen, and on the test set. Results are kept in experiments/without_lexicon.json.
"""

import argparse
import json
import sys
import tempfile
from functools import partial
from pathlib import Path

from results import kept

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from linear import figures, read_parts

RESULTS = Path(__file__).with_suffix(".json")
CELLS = (("gsd", 100), ("pku", 300), ("gsd", 1000), ("pku", 1000), ("gsd", 3997))
WEIGHTS = (0.0, 0.15, 0.3, 0.5, 1.0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--only", nargs="+", help='cells such as "pku, 1000"')
    options = parser.parse_args()
    for corpus, size in CELLS:
        key = f"{corpus}, {size}"
        if options.only is None or key in options.only:
            parts = read_parts(options.data, corpus)
            print(key, json.dumps(kept(RESULTS, key, partial(measure, size, parts))), flush=True)


def measure(size, parts):
    """The scores for each weight of the model without the lexicon."""
    from kcrf.runs import RunFolder, Settings
    from kcrf.tasks.segmentation import Segmentation
    from kcrf.training import train_tagger

    Segmentation.without_lexicon = 0.0  # the models are averaged here
    train, valid, test = parts[0][:size], parts[1][: max(size, 100)], parts[2]
    with tempfile.TemporaryDirectory() as folder:
        tagger, other = (
            train_tagger(Settings(encoder="linear", lexicon=lexicon), train, valid, out=Path(folder) / str(lexicon))[0]
            for lexicon in (True, False)
        )
        config = RunFolder(Path(folder) / "True").read_config().config
    words = {word for sentence in train for word in sentence}
    return {weight: scores_of_average(config, tagger, other.model, weight, valid, test, words) for weight in WEIGHTS}


def scores_of_average(config, tagger, other, weight, valid, test, words):
    """The scores of the average of the linear model of a tagger and another one, a dict."""
    from kcrf.networks.linear_networks import LinearTaggingNetwork
    from kcrf.taggers import WordSegmenter
    from kcrf.tasks.task import as_sentence

    network = LinearTaggingNetwork(tagger.model.averaged(other, weight))
    average = WordSegmenter.of(network, tagger.reader, config)
    parts = {"valid": valid, "test": test}
    return {name: figures(average.scores(list(map(as_sentence, part)), words)) for name, part in parts.items()}


if __name__ == "__main__":
    main()

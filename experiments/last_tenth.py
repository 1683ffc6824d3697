"""What a network of few sentences gains if a second one learns all sentences, the held-out tenth, too.

    python experiments/last_tenth.py --data PATH [--corpora weibo gsd titles people_daily ud_gsd] [--sizes 100 300 1000]

F1 on 1,500 other sentences (those of few_entities.py; the test set of UD Chinese GSD, words), and the seconds of the
processor. Results are kept in experiments/last_tenth.json.
"""

import argparse
import json
import tempfile
import time
from functools import partial
from itertools import product
from pathlib import Path

import few_entities
import numpy as np
from data import parts_of
from results import kept

RESULTS = Path(__file__).with_suffix(".json")
CORPORA = [*few_entities.CORPORA, "ud_gsd"]
BIOES = ("gsd", "titles")  # whose files have BMES


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the corpora")
    parser.add_argument("--corpora", nargs="+", default=CORPORA)
    parser.add_argument("--sizes", nargs="+", type=int, default=[100, 300, 1000])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    options = parser.parse_args()
    for size, seed, corpus in product(options.sizes, options.seeds, options.corpora):
        key = f"{corpus}, {size}, seed {seed}"
        print(key, json.dumps(kept(RESULTS, key, partial(measure, options.data, corpus, size, seed))), flush=True)


def measure(data, corpus, size, seed):
    """F1 and seconds of a network of nine tenths of the sentences, and of one of all."""
    from kcrf.progress_bars import quiet
    from kcrf.runs import Settings
    from kcrf.tasks import task_of
    from kcrf.training import train_tagger

    is_words = corpus == "ud_gsd"
    items = parts_of(data, corpus)[0] if is_words else few_entities.sentences(data, corpus)
    order = [items[i] for i in np.random.default_rng(seed).permutation(len(items))]
    train, test = order[:size], order[size : size + few_entities.TEST]
    scheme = {"scheme": "bioes"} if corpus in BIOES else {}
    settings, result = Settings(task="cws" if is_words else "ner", seed=seed, **scheme), {}
    for name, parts in (("nine tenths", task_of(settings.task).hold_out(train, seed)), ("all", (train, None))):
        began = time.process_time()
        with tempfile.TemporaryDirectory() as folder, quiet(True):
            tagger, _ = train_tagger(settings, *parts, out=f"{folder}/run")
        seconds = time.process_time() - began
        result[name] = {"f": round(tagger.scores(test)["f"], 4), "seconds": round(seconds, 1)}
    return result


if __name__ == "__main__":
    main()

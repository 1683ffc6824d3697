"""F1 of the defaults for training from scratch on corpora of several sizes, on the validation set and the test set.

    python experiments/defaults.py --data FOLDER
    python experiments/defaults.py --data FOLDER --only "ud_gsd, 500," --only "weibo, whole,"
    python experiments/defaults.py --data FOLDER --only "weibo, 500," --settings '{"epochs": 25, "batch_size": 16}'
    python experiments/defaults.py --table

FOLDER contains the files that data.py names. Each corpus is reduced to the numbers of sentences in SIZES, drawn by
the seed. Validation and test sets are reduced too, so that scoring does not take longer than training. Each sample is
trained with the settings in ROWS: "before" are the defaults of version 0.1.0, "rule" those that depend on the
size, without n-grams and copies, which came later. `--settings` changes settings of "before".

Every model is scored with its own decoding. A model without constraints is also scored with illegal transitions
forbidden in decoding. Entities are also scored with the `min_probability` that is best on the validation set. Results
are stored in experiments/defaults.json; stored results are not measured again.
"""

import argparse
import json
import os
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from data import TAGGED, cut, parts_of
from results import DEFAULTS_0_1, kept

RESULTS = Path(__file__).with_suffix(".json")
CONFIDENCES = (0.3, 0.4, 0.5, 0.6, 0.7)
HELD_OUT = (400, 1000)  # sentences of dev and test at most
SIZES = (500, 2000, 8000, None)
SENTENCES = {"ud_gsd": 3997, "pfr199801": 19484, "people_daily": 20864, "weibo": 1350, "wnut17": 3394}
ROWS = {"before": DEFAULTS_0_1, "rule": {"ngrams": False, "augment": 0}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of the corpora")
    parser.add_argument("--only", action="append", help='runs whose key contains this, such as "weibo" or "500, rule"')
    parser.add_argument("--settings", type=json.loads, metavar="JSON", help="one row: these instead of those in ROWS")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--table", action="store_true", help="print the results that are kept")
    options = parser.parse_args()
    if options.table:
        return print_table()
    if options.data is None:
        parser.error("needs --data FOLDER or --table")
    changed = options.settings
    rows = ROWS if changed is None else {json.dumps(changed, sort_keys=True): {**DEFAULTS_0_1, **changed}}
    for seed in options.seeds:
        for corpus, size, row in cuts_and_rows(rows):
            key = f"{corpus}, {size or 'whole'}, {row}, seed {seed}"
            if options.only is None or any(part in key for part in options.only):
                result = kept(RESULTS, key, partial(measure, options.data, corpus, size, rows[row], seed))
                print(key, json.dumps(result), flush=True)


def cuts_and_rows(rows):
    """The runs to make, `(corpus, size, name of the row)`: small cuts first."""
    return [
        (corpus, size, row)
        for size in SIZES
        for corpus in SENTENCES
        if size is None or size < SENTENCES[corpus]
        for row in rows
    ]


def measure(data, corpus, size, settings, seed):
    """The scores of one training run, and the processor seconds it took."""
    from kcrf.runs import RunFolder, Settings, read_run
    from kcrf.training import train_tagger

    task = TAGGED[corpus][0]
    train, dev, test = cut(parts_of(data, corpus), size, seed, *HELD_OUT)
    settings = Settings(task=task, seed=seed, **settings)
    with tempfile.TemporaryDirectory() as folder:
        out, worked = Path(folder) / "run", time.process_time()
        tagger, _ = train_tagger(settings, train, dev, out=out)
        seconds, record = time.process_time() - worked, read_run(out)
        result = {
            "sentences": len(train),
            "characters": sum(len(sentence.text) for sentence in train),
            "settings": {name: record.settings[name] for name in DEFAULTS_0_1},
            "dev by epoch": [round(row["valid_f"], 4) for row in record.log],
            "as trained": scores(tagger, dev, test, CONFIDENCES),
            "processor_seconds": round(seconds, 1),
            "backend": os.environ.get("KERAS_BACKEND", "tensorflow"),
        }
        if not record.settings["constraints"]:
            result["constrained decoding"] = scores(constrained(RunFolder(out)), dev, test)
    return result


def constrained(folder):
    """The tagger of a run trained without constraints, which forbids what is illegal in decoding."""
    from kcrf.networks.keras_networks import KerasTaggingNetwork
    from kcrf.networks.tagging import build_network
    from kcrf.runs.setup import load_setup
    from kcrf.taggers.load import TAGGERS

    setup = load_setup(folder)
    scheme = setup.config.data.tag_scheme()
    model = build_network(replace(setup.config.model, constraints=True), scheme, setup.reader)
    folder.load_weights(model)
    return TAGGERS[setup.config.task.name].of(KerasTaggingNetwork(model, scheme), setup.reader, setup.config)


def scores(tagger, dev, test, thresholds=()):
    """F1 on both parts; for entities also with the one of the thresholds that is best on the dev part."""
    found = {"dev": tagger.scores(dev)["f"], "test": tagger.scores(test)["f"]}
    if tagger.scheme.types and thresholds:
        by_threshold = {}
        decoder = tagger.decoder
        for decoder.min_probability in thresholds:
            by_threshold[decoder.min_probability] = tagger.scores(dev)["f"]
        decoder.min_probability = max(by_threshold, key=by_threshold.get)
        found |= {"threshold": decoder.min_probability, "dev at it": by_threshold[decoder.min_probability]}
        found["test at it"] = tagger.scores(test)["f"]
        decoder.min_probability = None
    return {name: round(value or 0.0, 4) for name, value in found.items()}


def print_table():
    """Prints the kept results as a Markdown table, one line per run."""
    print("| run | dev | test | decoding constrained: dev | test | threshold | dev | test | processor seconds |")
    print("|---|---|---|---|---|---|---|---|---|")
    for key, result in sorted(json.loads(RESULTS.read_text(encoding="utf-8")).items()):
        plain, forbidden = result["as trained"], result.get("constrained decoding", {})
        cells = [plain["dev"], plain["test"], forbidden.get("dev"), forbidden.get("test")]
        cells += [plain.get(name) for name in ("threshold", "dev at it", "test at it")]
        shown = ["" if cell is None else f"{cell:.4g}" for cell in cells]
        print(f"| {key} | {' | '.join(shown)} | {result['processor_seconds'] or ''} |")


if __name__ == "__main__":
    main()

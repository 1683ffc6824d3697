"""F1 with few labeled sentences, and with texts without labels that a model of these sentences labels.

    python experiments/unlabeled_texts.py --data FOLDER --work runs/unlabeled [--only "gsd, 1000" ...] [--seeds 0 ...]

FOLDER is that of benchmarks/linear.py. The teacher is trained with the defaults on the first sentences of the training
set. Its students, a network with the same settings and a linear model, also learn from the texts of up to 3,000 further
sentences. Beside them stands a linear model without a teacher. Results are kept in experiments/unlabeled_texts.json.
"""

import argparse
import json
import sys
from functools import partial
from pathlib import Path

from results import kept, run_folder, trained

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from linear import figures, on_valid, read_parts

RESULTS = Path(__file__).with_suffix(".json")
CELLS = (("gsd", 300), ("gsd", 1000), ("people_daily", 500))
MOST = 3000  # unlabeled texts
ROWS = {  # the encoder, and whether there is a teacher
    "default": (None, False),
    "default, taught": (None, True),
    "linear": ("linear", False),
    "linear, taught": ("linear", True),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--work", required=True, type=Path, help="the folder of the run folders")
    parser.add_argument("--only", nargs="+", help='cells such as "gsd, 1000"')
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    options = parser.parse_args()
    for corpus, size in CELLS:
        if options.only is None or f"{corpus}, {size}" in options.only:
            parts = read_parts(options.data, corpus)
            for seed in options.seeds:
                for row in ROWS:
                    key = f"{corpus}, {size}, {row}, {seed}"
                    measure = partial(measured, options.work, corpus, size, row, seed, parts)
                    print(key, json.dumps(kept(RESULTS, key, measure)), flush=True)


def measured(work, corpus, size, row, seed, parts):
    """The scores of a row on the validation and the test set, and the time of its training."""
    from kcrf.runs import Settings
    from kcrf.tasks.task import as_sentence

    encoder, is_taught = ROWS[row]
    settings, more = {"encoder": encoder} if encoder else {}, {}
    if is_taught:
        teacher = run_folder(work, f"{corpus}, {size}, default, {seed}")
        if not teacher.is_dir():  # its result is stored, but not the model
            measured(work, corpus, size, "default", seed, parts)
        settings["teacher"] = str(teacher)
        more["unlabeled"] = [as_sentence(item).text for item in parts[0][size : size + MOST]]
    settings = Settings(task="cws" if corpus in ("pku", "gsd") else "ner", seed=seed, **settings)
    limited = (parts[0][:size], parts[1][: max(size, 100)], parts[2])
    out = run_folder(work, f"{corpus}, {size}, {row}, {seed}")
    _, scores, taken = trained(settings, limited, out, **more)
    return {**figures(scores["test"]), **on_valid(scores["valid"]), "processor_seconds": taken["processor_seconds"]}


if __name__ == "__main__":
    main()

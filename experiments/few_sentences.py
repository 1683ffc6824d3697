"""F1 on few sentences of a corpus that no default was chosen by: dates, quantities and names of UD Chinese GSD.

    python experiments/few_sentences.py --data FOLDER [--encoders linear cnn] [--sizes 100 300 1000] [--seeds 0 1 2]

FOLDER is that of Universal Dependencies Chinese GSD, with train.conll, dev.conll and test.conll. Each character has a
BMES tag: DATE (a number and 年, 月, 日 and the like), QUANTITY (another number and its measure word) or NAME (a run of
proper nouns). A tenth of the sentences is held out for validation. Results are kept in experiments/few_sentences.json.
"""

import argparse
import json
import tempfile
import time
from functools import partial
from itertools import product
from pathlib import Path

from results import kept

RESULTS = Path(__file__).with_suffix(".json")
TIMES = set("年 月 日 时 分 秒 世纪 年代 点 号 小时 分钟".split())
CELLS = {
    "bio, no copies": {"scheme": "bio", "augment": 0},
    "bio, 3 copies": {"scheme": "bio", "augment": 3, "augment_by": "mentions"},
    "bioes, no copies": {"scheme": "bioes", "augment": 0},
    "bioes, 3 copies": {"scheme": "bioes", "augment": 3, "augment_by": "mentions"},
    "defaults": {},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--encoders", nargs="+", default=["linear"])
    parser.add_argument("--sizes", nargs="+", type=int, default=[100, 300, 1000])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--cells", nargs="+", default=list(CELLS))
    options = parser.parse_args()
    train, test = (read(options.data / f"{part}.conll") for part in ("train", "test"))
    for encoder, size, cell, seed in product(options.encoders, options.sizes, options.cells, options.seeds):
        key = f"{encoder}, {size}, {cell}, seed {seed}"
        print(key, json.dumps(kept(RESULTS, key, partial(measure, encoder, size, CELLS[cell], seed, train, test))))


def read(path):
    """The sentences of a CoNLL-U file with their dates, quantities and names."""
    blocks = path.read_text(encoding="utf-8").strip().split("\n\n")
    return [sentence([line.split("\t") for line in block.split("\n") if line[:1].isdigit()]) for block in blocks]


def sentence(rows):
    """The `Sentence` of the rows of a CoNLL-U file. Neighboring dates, and proper nouns, are one entity."""
    from kcrf.corpora import Sentence

    text, spans = "", []
    for row, following in zip(rows, [*rows[1:], [""] * 5], strict=True):
        start, text = len(text), text + row[1]
        label, end = "NAME" if row[4] == "NNP" else None, len(text)
        if row[4] == "CD" and (following[1] in TIMES or following[4] == "NNB"):
            label, end = "DATE" if following[1] in TIMES else "QUANTITY", end + len(following[1])
        if label is None or spans and start < spans[-1][1]:
            continue
        if spans and spans[-1][1:] == (start, label) and label != "QUANTITY":
            start = spans.pop()[0]
        spans.append((start, end, label))
    return Sentence(text, spans, [(i, i + 1) for i in range(len(text))])


def measure(encoder, size, settings, seed, train, test):
    """F1 on the test set of a run on the first sentences, and the seconds of the run."""
    from kcrf.runs import Settings
    from kcrf.training import train_tagger

    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        user = Settings(task="ner", encoder=encoder, seed=seed, **settings)
        _, scores = train_tagger(user, train[:size], None, test, Path(folder) / "run")
    scored = {"f": round(scores["test"]["f"], 4), "valid": round(scores["valid"]["f"], 4)}
    return {**scored, "seconds": round(time.process_time() - start)}


if __name__ == "__main__":
    main()

"""F1 of words and entities with one shared encoder, or with separate encoders, by seed.

    python experiments/segment_and_tag.py --words PATH/pfr199801/train.utf8 --entities PATH/people_daily

The model and its training are those of `examples/task_segment_and_tag.py`. The texts are sentences of up to 64
characters, split after 。！？；. Training sets: the first 500 sentences of PFR 1998-01 with words, and of the People's
Daily with entities. Test sets: the last 1,000 sentences of PFR, and the first 1,000 of the People's Daily's test set.
Each sentence is shown 10 times, with one task or both. `alternate` has batches of 16 sentences of one task, `joint` of
16 sentences of each. There is no validation set: the last epoch counts. Results are stored in
experiments/segment_and_tag.json.
"""

import argparse
import json
import os
import re
import sys
import time
from functools import partial
from pathlib import Path

from results import kept

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "examples"))

ROWS = {"words alone": [0], "entities alone": [1], "alternate": [0, 1], "joint": [0, 1]}
EPOCHS, MOST, LONGEST = 10, {"train": 500, "test": 1000}, 64
END = re.compile("(?<=[。！？；])")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=Path, required=True)
    parser.add_argument("--entities", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options = parser.parse_args()
    parts = None
    for seed in options.seeds:
        for row in ROWS:
            parts = parts or read_parts(options)
            key = f"{row}, seed {seed}"
            print(
                key,
                json.dumps(kept(HERE / "segment_and_tag.json", key, partial(measure, parts, row, seed))),
                flush=True,
            )


def measure(parts, row, seed):
    """F1 of each task that a model was trained on."""
    from task_segment_and_tag import fit, score

    began = time.process_time()
    train, test = ([part[i] for i in ROWS[row]] for part in parts)
    model, crfs, vocabulary = fit(train, EPOCHS, joint=row == "joint", seed=seed, verbose=0)
    scores = {texts.task: round(score(model, crfs[texts.task], vocabulary, texts), 5) for texts in test}
    backend = os.environ.get("KERAS_BACKEND", "tensorflow")
    return {**scores, "processor_seconds": round(time.process_time() - began), "backend": backend}


def read_parts(options):
    """The `Texts` of words and of entities to train on, and those to score."""
    from task_segment_and_tag import of_entities, of_words

    from kcrf.corpora import entity_types, read_conll, read_segmented

    words = [part for line in read_segmented(options.words) for part in cut_words(line)]
    paths = [next(options.entities.glob(f"*{name}")) for name in ("train", "test")]
    entities = [[part for sentence in read_conll(path) for part in cut_entities(sentence)] for path in paths]
    train, test = entities[0][: MOST["train"]], entities[1][: MOST["test"]]
    types = entity_types(train)
    return (
        [of_words(words[: MOST["train"]]), of_entities(train, types)],
        [of_words(words[-MOST["test"] :]), of_entities(test, types)],
    )


def cut_words(words):
    """The sentences of a line of words, those that are short enough."""
    found = [[]]
    for word in words:
        found[-1].append(word)
        if END.search(word):
            found.append([])
    return [part for part in found if 0 < sum(map(len, part)) <= LONGEST]


def cut_entities(sentence):
    """The sentences of a `kcrf.corpora.Sentence`, those that are short enough and cut no entity."""
    from kcrf.corpora import Sentence

    start, found = 0, []
    for text in END.split(sentence.text):
        end = start + len(text)
        inside = [(a - start, b - start, label) for a, b, label in sentence.spans if start <= a and b <= end]
        cut = any(a < end < b or a < start < b for a, b, _ in sentence.spans)
        if 0 < len(text) <= LONGEST and not cut:
            found.append(Sentence(text, inside))
        start = end
    return found


if __name__ == "__main__":
    main()

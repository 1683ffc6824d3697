"""Named entities from sentences that are labeled in part: unknown labels compared with labels that are missing.

    KERAS_BACKEND=torch python examples/task_partial_labels.py

In three of four sentences, only the first half is labeled. Usually the other half is stored as "O", no entity. With
`unknown`, the CRF sums over all tags that the characters there may have. If nothing says where labels are missing,
`incomplete=True` estimates them by models of other sentences. The sentences are the made-up ones that come with kcrf.
"""

import os
import tempfile
from dataclasses import replace

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from kcrf.corpora import load_mini
from kcrf.training import Settings, train_tagger

corpus = load_mini("ner")
settings = Settings(task="ner", epochs=12, batch_size=16, width=64, depth=2, character_width=32, bigram_width=16)


def half_labeled(number, sentence):
    """A `Sentence` whose second half has no labels and is unknown; each fourth sentence as it is."""
    half, length = len(sentence.text) // 2, len(sentence.text)
    if number % 4 == 0 or not half:
        return sentence
    labeled = [span for span in sentence.spans if span[1] <= half]
    half = max([half, *(end for _, end, _ in labeled)])
    cut = [start for start, end, _ in sentence.spans if start < half < end]  # an entity that is half labeled
    return replace(sentence, spans=labeled, unknown=[(min([half, *cut]), length)])


partial = [half_labeled(*item) for item in enumerate(corpus.train)]
as_outside = [replace(sentence, unknown=[]) for sentence in partial]
versions = {
    "all labels": (corpus.train, False),
    "missing labels as O": (as_outside, False),
    "missing labels as O, incomplete": (as_outside, True),
    "missing labels as unknown": (partial, False),
}
for name, (train, incomplete) in versions.items():
    with tempfile.TemporaryDirectory() as folder:
        settings = replace(settings, incomplete=incomplete)
        _, scores = train_tagger(settings, train, corpus.valid, corpus.test, out=folder)
    entities = sum(len(sentence.spans) for sentence in train)
    print(f"{name}: F1 on the test set: {scores['test']['f']:.3f} ({entities} entities in the training set)")

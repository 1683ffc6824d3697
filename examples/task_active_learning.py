"""Named entities from few labeled sentences: sentences that a model suggests, compared with random ones.

    KERAS_BACKEND=torch python examples/task_active_learning.py

Both begin with the same 20 labeled sentences, and label 20 more in each of three rounds. Here the labels are those of
the corpus; in practice, `kcrf suggest` writes the sentences for doccano or Label Studio. The sentences are the made-up
ones that come with kcrf; the model is linear.
"""

import os
import tempfile

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from kcrf.corpora import load_mini
from kcrf.taggers import EntityRecognizer
from kcrf.training import Settings, train_tagger

ROUNDS, COUNT = 3, 20
corpus = load_mini("ner")
settings = Settings(task="ner", encoder="linear")


def choose(run, labeled, pool, is_active):
    """The sentences of the pool to label next."""
    if not is_active:
        return pool[:COUNT]  # they are in no order
    texts, known = [sentence.text for sentence in pool], [sentence.text for sentence in labeled]
    return [pool[suggestion.index] for suggestion in EntityRecognizer(run).suggest(texts, COUNT, labeled=known)]


for name, is_active in (("random", False), ("suggested", True)):
    labeled, pool = corpus.train[:COUNT], corpus.train[COUNT:]
    for number in range(ROUNDS + 1):
        with tempfile.TemporaryDirectory() as folder:
            _, scores = train_tagger(settings, labeled, corpus.valid, corpus.test, out=f"{folder}/run")
            chosen = choose(f"{folder}/run", labeled, pool, is_active)
        print(f"{name}: {len(labeled)} sentences: F1 on the test set: {scores['test']['f']:.3f}", flush=True)
        if number < ROUNDS:
            labeled, pool = labeled + chosen, [sentence for sentence in pool if sentence not in chosen]

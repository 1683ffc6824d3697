"""A new entity type for a trained model, from sentences in which only that type is marked.

    KERAS_BACKEND=torch python examples/task_growing_labels.py

A model recognizes persons and locations. New sentences have organizations marked, and nothing else.
`Settings(extend=RUN)` adds the type: outside of organizations, the model learns what the old model predicts.
Fine-tuning on the same sentences, with everything else as "O", forgets persons and locations. The sentences are the
made-up ones that come with kcrf.
"""

import os
import tempfile
from dataclasses import replace

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from kcrf.corpora import load_mini
from kcrf.training import Settings, train_tagger

corpus = load_mini("ner")
half = len(corpus.train) // 2


def only(types, sentences):
    """The sentences with the entities of some types alone."""
    return [replace(sentence, spans=[span for span in sentence.spans if span[2] in types]) for sentence in sentences]


def print_scores(name, scores):
    """Prints F1 on the test set by type."""
    by_type = ", ".join(f"{label} {of_type['f'] or 0:.3f}" for label, of_type in scores["test"]["types"].items())
    print(f"{name}: F1 on the test set: {by_type}")


with tempfile.TemporaryDirectory() as runs:
    old = only(("PER", "LOC"), corpus.train[:half]), only(("PER", "LOC"), corpus.valid)
    settings = Settings(task="ner", encoder="linear")  # for the default encoder, leave `encoder` out
    _, scores = train_tagger(settings, *old, corpus.test, out=f"{runs}/old")
    print_scores("the old model", scores)
    new = only(("ORG",), corpus.train[half:]), only(("ORG",), corpus.valid)
    fine_tuned = Settings(extend=f"{runs}/old", marked="LOC,ORG,PER")  # all types are said to be marked
    _, scores = train_tagger(fine_tuned, *new, corpus.test, out=f"{runs}/fine_tuned")
    print_scores("fine-tuned", scores)
    _, scores = train_tagger(Settings(extend=f"{runs}/old"), *new, corpus.test, out=f"{runs}/new")
    print_scores("extended", scores)

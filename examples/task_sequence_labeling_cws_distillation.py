"""Distills a small word segmenter from a larger one, on the training set and on unlabeled text.

    KERAS_BACKEND=torch python examples/task_sequence_labeling_cws_distillation.py

300 sentences are labeled; the teacher labels the others. Without code: `kcrf train --train FILE --out runs/teacher`,
then `kcrf train --train FILE --teacher runs/teacher --unlabeled TEXTS --width 32 --depth 1 --out runs/student`.
"""

from dataclasses import replace

from kcrf.corpora import load_mini
from kcrf.training import Settings, train_segmenter

corpus = load_mini()
train, texts = corpus.train[:300], ["".join(words) for words in corpus.train[300:]]


def f1(name, settings, **more):
    """Trains a segmenter and prints its F1."""
    out = f"runs/{name}"
    _, scores = train_segmenter(settings, train, corpus.valid, corpus.test, out=out, overwrite=True, **more)
    print(f"{name}: F1 on the test set: {scores['test']['f']:.4f}")


teacher = Settings(width=96, depth=2, epochs=8, batch_size=16, learning_rate=2e-3, min_bigrams=2)
small = Settings(width=32, depth=1, steps=160, batch_size=16, learning_rate=4e-3, min_bigrams=2)
f1("teacher", teacher)
f1("by labels alone", small)
f1("with a teacher", replace(small, teacher="runs/teacher"), unlabeled=texts)

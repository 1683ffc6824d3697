"""Shared by the examples of text classification: batches of labeled texts, and the weights of the best epoch."""

import numpy as np

from kcrf.backend import keras
from kcrf.snippets import DataGenerator, sequence_padding


class LabeledTexts(DataGenerator):
    """Batches of `(text, label)`, or of `(text, other text, label)`."""

    def __init__(self, data, batch_size, tokenizer, maxlen):
        super().__init__(data, batch_size)
        self.tokenizer, self.maxlen = tokenizer, maxlen

    def __iter__(self, random=False):
        rows = []
        for is_end, (*texts, label) in self.sample(random):
            rows.append((*self.tokenizer.encode(*texts, maxlen=self.maxlen), [label]))
            if len(rows) == self.batch_size or is_end:
                token_ids, segment_ids, labels = zip(*rows)
                inputs = [sequence_padding(token_ids, self.maxlen), sequence_padding(segment_ids, self.maxlen)]
                yield inputs, sequence_padding(labels)
                rows = []


def accuracy(model, batches):
    """The fraction of texts with the correct label."""
    right = [model.predict(x, verbose=0).argmax(axis=1) == y[:, 0] for x, y in batches]
    return float(np.concatenate(right).mean())


class Evaluator(keras.callbacks.Callback):
    """Keeps the weights of the epoch with the best accuracy."""

    def __init__(self, batches, path="best_model.weights.h5"):
        super().__init__()
        self.batches, self.path, self.best = batches, path, 0.0

    def on_epoch_end(self, epoch, logs=None):
        score = accuracy(self.model, self.batches)
        if score >= self.best:
            self.best = score
            self.model.save_weights(self.path)
        print(f"epoch {epoch + 1}: accuracy {score:.4f}, best {self.best:.4f}")

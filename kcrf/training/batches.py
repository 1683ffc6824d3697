"""Training batches: windows of one length bucket together, drawn anew every epoch."""

import numpy as np

from kcrf.backend import keras
from kcrf.readers import tags_of_units
from kcrf.readers.padding import bucket, pad, padded

__all__ = ["Batches", "training_rows"]


def training_rows(sentences, readings, scheme, whole_spans=False):
    """What is trained on: `(inputs, tags)` of every window of every sentence.

    Args:
        sentences: List of `kcrf.corpora.Sentence`.
        readings: The `kcrf.readers.Reading` of each.
        scheme: A `TagScheme`.
        whole_spans: Whether tags of a span that a window cuts are unknown, as a CRF with constraints needs it: there
            no window may begin inside a word. Defaults to False.

    Returns:
        A list of pairs: a dict of rows of ints, and a list of as many tags, -1 where there is none or none is known.
    """
    rows = []
    for sentence, reading in zip(sentences, readings, strict=True):
        tags = tags_of_units(scheme, reading.units, sentence.spans)
        for window in reading.windows:
            chosen = tags[window.first : window.first + len(window.positions)]
            if whole_spans:
                chosen = _without_cut_spans(scheme, chosen)
            row = np.full(len(next(iter(window.inputs.values()))), -1)
            row[window.positions] = chosen
            rows.append((window.inputs, row.tolist()))
    return rows


def _without_cut_spans(scheme, tags):
    """Tags of a window with -1 for what belongs to a span that begins before it or ends behind it."""
    tags = np.array(tags, int)
    opens = np.flatnonzero((tags < 0) | scheme.allowed_starts[tags])
    if len(tags) and tags[0] >= 0 and not scheme.allowed_starts[tags[0]]:
        tags[: opens[0] if len(opens) else None] = -1
    if len(tags) and tags[-1] >= 0 and not scheme.allowed_ends[tags[-1]]:
        tags[opens[-1] if len(opens) else 0 :] = -1
    return tags


class Batches(keras.utils.PyDataset):
    """Training batches: windows of one length bucket together, always equally many of a bucket.

    Which rows stand together, and in which order, follows from the seed and the epoch alone: an interrupted run draws
    the same batches when it goes on.

    Args:
        rows: What `training_rows` returns, at least one.
        batch_size: Rows of a batch; a bucket's last batch is filled up with other rows of the bucket.
        seed: Draws the batches.
        batch_tokens: Positions of a batch: longer rows come in smaller batches. Defaults to None: `batch_size` rows.
    """

    def __init__(self, rows, batch_size, seed, batch_tokens=None):
        super().__init__()
        self._buckets = {}
        for row in rows:
            self._buckets.setdefault(bucket(len(row[1])), []).append(row)
        self._sizes = {
            length: max(1, batch_tokens // length) if batch_tokens else batch_size for length in self._buckets
        }
        self._seed = seed
        self.draw(0)

    def __len__(self):
        return len(self._batches)

    def __getitem__(self, index):
        length, rows = self._batches[index]
        inputs, tags = zip(*rows, strict=True)
        return padded(inputs, length), pad(tags, length, value=-1)

    def draw(self, epoch):
        """Draws the batches of an epoch, counted from 0."""
        random, self._batches = np.random.default_rng([self._seed, epoch]), []
        for length, rows in self._buckets.items():
            size = self._sizes[length]
            order = random.permutation(len(rows))
            order = np.resize(order, -(-len(order) // size) * size)
            for chosen in order.reshape(-1, size):
                self._batches.append((length, [rows[i] for i in chosen]))
        random.shuffle(self._batches)
        # Keras takes the lengths of the first two batches for those of all, on TensorFlow, unless they differ.
        lengths = [length for length, _ in self._batches]
        other = next((i for i, length in enumerate(lengths) if length != lengths[0]), None)
        if other is not None:
            self._batches[1], self._batches[other] = self._batches[other], self._batches[1]

"""Training data: windows in batches of one length bucket, drawn again every epoch."""

from dataclasses import replace

import numpy as np

from kcrf.backend import keras
from kcrf.readers.padding import bucket, row_length, training_batch
from kcrf.tasks.tagging import tagged_windows

__all__ = ["Batches", "held_out_batch"]


def held_out_batch(reader, sentences, scheme, limit=256):
    """The inputs and tags of the first windows of some sentences, as one batch.

    Args:
        reader: A `CharacterReader`, `WordReader` or `PieceReader`.
        sentences: List of `kcrf.corpora.Sentence`.
        scheme: A `TagScheme`. Entities of other types than its own are left out.
        limit: The most windows. Defaults to 256.

    Returns:
        `(inputs, tags)`, as `kcrf.readers.padding.training_batch` returns them.
    """
    relabeled = [
        replace(s, spans=[span for span in s.spans if not scheme.types or span[2] in scheme.types])
        for s in [sentence for sentence in sentences if sentence.text][:limit]
    ]
    readings = reader.read([sentence.text for sentence in relabeled], [sentence.tokens for sentence in relabeled])
    return training_batch(tagged_windows(relabeled, readings, scheme)[:limit])


class Batches(keras.utils.PyDataset):
    """Training batches. Those of a length bucket all have the same number of windows.

    The batches of an epoch depend on the seed and the number of the epoch only, so a run that is resumed draws the same
    ones.

    Args:
        windows: List of `(inputs, target)`, as `tagged_windows` returns it, at least one.
        batch_size: Windows of a batch; not more than there are. The last batch of a bucket is filled up with other
            windows of the bucket.
        seed: Seed of the order.
        batch_tokens: Positions of a batch, instead of `batch_size`: batches of longer windows have fewer of them.
            Defaults to None.
        carry: Whether the windows that are left over in a bucket go into the next longer one. Fewer windows are then
            repeated to fill up batches, which matters where each counts. Defaults to False.
        any_length: Whether batches may have any length, for a backend that compiles nothing. Windows of similar
            lengths are then drawn together, without buckets, and hardly padded. No effect with `batch_tokens`. Defaults
            to False.
    """

    def __init__(self, windows, batch_size, seed, batch_tokens=None, carry=False, any_length=False):
        super().__init__()
        self._buckets, self._carry, self._any_length = {}, carry, any_length and batch_tokens is None
        for window in windows:
            length = 0 if self._any_length else bucket(row_length(window[0]))
            self._buckets.setdefault(length, []).append(window)
        sizes = {length: max(1, batch_tokens // length) if batch_tokens else batch_size for length in self._buckets}
        self._sizes = {length: min(size, len(windows)) for length, size in sizes.items()}  # more would be repetitions
        self._seed = seed
        self.draw(0)

    def __len__(self):
        return len(self._batches)

    def __getitem__(self, index):
        return training_batch(self._batches[index], self._any_length)

    def draw(self, epoch):
        """Draws the batches of an epoch. Epochs are counted from 0."""
        random, batches = np.random.default_rng([self._seed, epoch]), []
        leftover = []
        for length in sorted(self._buckets) if self._carry else self._buckets:
            windows, size = [*self._buckets[length], *leftover], self._sizes[length]
            order = random.permutation(len(windows))
            if self._any_length:
                order = _by_length(order, windows, size)
            if self._carry and length != max(self._buckets):
                order, remaining = np.split(order, [len(order) // size * size])
                leftover = [windows[i] for i in remaining]
            order = np.resize(order, -(-len(order) // size) * size)  # repeats the first ones to fill up the last batch
            batches += [(length, [windows[i] for i in chosen]) for chosen in order.reshape(-1, size)]
        random.shuffle(batches)
        # On TensorFlow, Keras takes the length of the first two batches for that of all, unless they differ.
        other = next((i for i, (length, _) in enumerate(batches) if length != batches[0][0]), None)
        if other is not None:
            batches[1], batches[other] = batches[other], batches[1]
        self._batches = [windows for _, windows in batches]


def _by_length(order, windows, size):
    """An order in which windows of similar lengths follow each other: each run of 8 batches is sorted by length."""
    lengths = np.array([row_length(inputs) for inputs, _ in windows])
    runs = np.split(order, range(8 * size, len(order), 8 * size))
    return np.concatenate([run[np.argsort(lengths[run], kind="stable")] for run in runs])

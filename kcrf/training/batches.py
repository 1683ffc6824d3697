"""Batches of training windows of similar lengths, drawn again in each epoch."""

from dataclasses import replace

import numpy as np

from kcrf.backend import keras
from kcrf.readers.padding import bucket, row_length, training_batch
from kcrf.tasks.task import tagged_windows


def held_out_batch(reader, sentences, scheme, limit=256):
    """The inputs and tags of the first windows of some sentences, as one batch.

    Args:
        reader: A `CharacterReader`, `WordReader` or `PieceReader`.
        sentences: List of `kcrf.corpora.Sentence`.
        scheme: A `TagScheme`. Entities of types that it lacks are omitted.
        limit: The maximum number of windows. Defaults to 256.

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
    """The batches of training. All batches of a length bucket have the same number of windows.

    The batches of an epoch depend only on the seed and the number of the epoch, so a resumed run draws the same
    batches.

    Args:
        windows: List of `(inputs, target)`, as `tagged_windows` returns it, at least one.
        batch_size: The number of windows per batch. Smaller if there are fewer windows. The last batch of a bucket is
            filled with other windows of the bucket.
        seed: The seed of the order.
        batch_tokens: The number of positions per batch, instead of `batch_size`: batches of longer windows have fewer
            windows. Defaults to None.
        carry: Whether the windows of an incomplete batch move to the next longer bucket, so that fewer windows are
            repeated. Defaults to False.
        any_length: Whether batches may have any length, for a backend that does not compile shapes. Windows of similar
            lengths are then batched without buckets and with little padding. No effect with `batch_tokens`. Defaults
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
            order = np.resize(order, -(-len(order) // size) * size)  # repeats the first windows to fill the last batch
            batches += [(length, [windows[i] for i in chosen]) for chosen in order.reshape(-1, size)]
        random.shuffle(batches)
        # On TensorFlow, Keras assumes that all batches have the length of the first two, unless these differ.
        other = next((i for i, (length, _) in enumerate(batches) if length != batches[0][0]), None)
        if other is not None:
            batches[1], batches[other] = batches[other], batches[1]
        self._batches = [windows for _, windows in batches]


def _by_length(order, windows, size):
    """A random order in which each run of 8 batches is sorted by length, so that batches have similar lengths."""
    lengths = np.array([row_length(inputs) for inputs, _ in windows])
    runs = np.split(order, range(8 * size, len(order), 8 * size))
    return np.concatenate([run[np.argsort(lengths[run], kind="stable")] for run in runs])

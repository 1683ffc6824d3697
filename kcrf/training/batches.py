"""Batches of training windows of similar lengths, drawn again in each epoch."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kcrf.backend import keras
from kcrf.corpora import Sentence
from kcrf.readers import Reader
from kcrf.readers.padding import bucket, row_length, training_batch
from kcrf.tags import TagScheme
from kcrf.tasks.task import tagged_windows


def held_out_batch(reader: Reader, sentences: Sequence[Sentence], scheme: TagScheme, limit: int = 256) -> Any:
    """The inputs and tags of the first windows of some sentences, as one batch."""
    relabeled = [
        replace(s, spans=[span for span in s.spans if not scheme.types or span[2] in scheme.types])
        for s in [sentence for sentence in sentences if sentence.text][:limit]
    ]
    readings = reader.read([sentence.text for sentence in relabeled], [sentence.tokens for sentence in relabeled])
    return training_batch(tagged_windows(relabeled, readings, scheme)[:limit])


class Batches(keras.utils.PyDataset):  # type: ignore[misc]
    """The batches of training. All batches of a length bucket have the same number of windows.

    The batches of an epoch depend only on the seed and the number of the epoch, so a resumed run draws the same
    batches. The last batch of a bucket is filled with other windows of the bucket. With `carry`, the windows of an
    incomplete batch move to the next longer bucket instead, so that fewer windows are repeated. With `any_length`, for
    backends that compile no shapes, windows of similar lengths share a batch; `batch_tokens` has buckets all the same.
    """

    def __init__(
        self,
        windows: Sequence[Any],
        batch_size: int,
        seed: int,
        batch_tokens: int | None = None,
        carry: bool = False,
        any_length: bool = False,
    ) -> None:
        super().__init__()
        self._carry, self._any_length, self._seed = carry, any_length and batch_tokens is None, seed
        self._buckets: dict[int, list[Any]] = {}
        for window in windows:
            self._buckets.setdefault(0 if self._any_length else bucket(row_length(window[0])), []).append(window)
        sizes = {length: max(1, batch_tokens // length) if batch_tokens else batch_size for length in self._buckets}
        self._sizes = {length: min(size, len(windows)) for length, size in sizes.items()}  # more would be repetitions
        self.draw(0)

    def __len__(self) -> int:
        return len(self._batches)

    def __getitem__(self, index: int) -> Any:
        return training_batch(self._batches[index], self._any_length)

    def draw(self, epoch: int) -> None:
        """Draws the batches of an epoch. Epochs are counted from 0."""
        random, batches = np.random.default_rng([self._seed, epoch]), []
        leftover: list[Any] = []
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


def _by_length(order: np.ndarray, windows: Sequence[Any], size: int) -> np.ndarray:
    """A random order in which each run of 8 batches is sorted by length, so that batches have similar lengths."""
    lengths = np.array([row_length(inputs) for inputs, _ in windows])
    runs = np.split(order, range(8 * size, len(order), 8 * size))
    return np.concatenate([run[np.argsort(lengths[run], kind="stable")] for run in runs])

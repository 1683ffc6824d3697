"""Combines windows to batches of arrays in few shapes, because models are compiled for each shape. Needs NumPy only."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from kcrf.readers.standards import TagsOfStandard
from kcrf.readers.units import Reading, Window

Inputs = dict[str, Any]  # rows of integers, or of integer vectors, with the same length
Arrays = dict[str, np.ndarray]
BUCKETS = (8, 16, 32, 64, 96, 128)  # the lengths of batches, in positions
LONG_BUCKETS = (192, 256, 384, 512)  # the lengths for whole texts
_UNKNOWN_TAG = -1


def bucket(length: int) -> int:
    """The length to which a window of this length is padded: the next larger one in `BUCKETS` or `LONG_BUCKETS`."""
    return next(size for size in (*BUCKETS, *LONG_BUCKETS) if length <= size)


class TokenRow(list[int]):
    """A row of token ids, which is padded with the padding token."""

    padding = 0

    @classmethod
    def of(cls, ids: Iterable[int], padding: int) -> "TokenRow":
        row = cls(ids)
        row.padding = padding
        return row


def pad(rows: Sequence[Any], length: int, value: int = 0, count: int | None = None) -> np.ndarray:
    """Combines rows to an int32 array, padded on the right, and with rows of padding at the end."""
    array = np.full((count or len(rows), length, *np.shape(rows[0])[1:]), value, "int32")
    for target, row in zip(array, rows, strict=False):
        if len(row):
            target[: len(row)] = row
    return array


def training_batch(windows: Sequence[tuple[Inputs, Any]], any_length: bool = False) -> tuple[Arrays, Any]:
    """The inputs and targets of windows, padded to the bucket of the longest window."""
    inputs, targets = zip(*windows, strict=True)
    longest = max(map(row_length, inputs))
    length = longest if any_length else bucket(longest)
    return _pad_inputs(inputs, length), _pad_targets(targets, length)


def _pad_targets(targets: Sequence[Any], length: int) -> Any:
    if isinstance(targets[0], list):
        return pad(targets, length, _UNKNOWN_TAG)
    if isinstance(targets[0], TagsOfStandard):
        rows = [target.by_standard() for target in targets]
        return {name: pad([row[name] for row in rows], length, _UNKNOWN_TAG) for name in targets[0].standards}
    if hasattr(targets[0], "padded"):
        return np.stack([target.padded(length) for target in targets])
    return np.array(targets)


def row_length(inputs: Inputs) -> int:
    """The number of positions of a dict of rows."""
    return len(next(iter(inputs.values())))


def inference_batches(
    readings: Sequence[Reading], batch_size: int, few_shapes: bool = True
) -> Iterator[tuple[list[tuple[int, Window]], Arrays]]:
    """Yields the windows of texts in batches, sorted by length to minimize padding."""
    check_batch_size(batch_size)
    windows = [(number, window) for number, reading in enumerate(readings) for window in reading.windows]
    windows.sort(key=lambda item: item[1].length)
    for first in range(0, len(windows), batch_size):
        batch = windows[first : first + batch_size]
        length, rows = max(batch[-1][1].length, 1), len(batch)  # sorted by length; an empty text has a window, too
        if few_shapes:
            length, rows = bucket(length), min(batch_size, next(8**i for i in range(99) if rows <= 8**i))
        yield batch, _pad_inputs([window.inputs for _, window in batch], length, rows)


def check_batch_size(batch_size: Any) -> None:
    """Raises ValueError if a batch size is not a positive integer."""
    if not isinstance(batch_size, int | np.integer) or batch_size < 1:
        raise ValueError(f"`batch_size` must be a positive integer. Received: {batch_size!r}")


def _pad_inputs(inputs: Sequence[Inputs], length: int, count: int | None = None) -> Arrays:
    """Combines dicts of rows to a dict of arrays `(count, length, ...)`."""
    padding = {name: getattr(row, "padding", 0) for name, row in inputs[0].items()}
    return {name: pad([window[name] for window in inputs], length, padding[name], count) for name in inputs[0]}

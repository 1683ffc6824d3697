"""Combines windows to batches of arrays in few shapes, because models are compiled for each shape. Needs NumPy only."""

import numpy as np

from kcrf.readers.standards import TagsOfStandard

BUCKETS = (8, 16, 32, 64, 96, 128)  # the lengths of batches, in positions
LONG_BUCKETS = (192, 256, 384, 512)  # the lengths for whole texts
_UNKNOWN_TAG = -1


def bucket(length):
    """The length to which a window of this length is padded: the next larger one in `BUCKETS` or `LONG_BUCKETS`."""
    return next(size for size in (*BUCKETS, *LONG_BUCKETS) if length <= size)


def pad(rows, length, value=0, count=None):
    """Combines rows to an int32 array, padded on the right, and with rows of padding at the end.

    Args:
        rows: List of at least one sequence of integers, or of integer vectors of the same size.
        length: The number of positions of the array, at least that of the longest row.
        value: The padding. Defaults to 0.
        count: The number of rows of the array. Defaults to None: the number of `rows`.

    Returns:
        `(count, length)`, or `(count, length, size of a vector)`.

    >>> pad([[1, 2], [3]], length=3, count=3).tolist()
    [[1, 2, 0], [3, 0, 0], [0, 0, 0]]
    """
    array = np.full((count or len(rows), length, *np.shape(rows[0])[1:]), value, "int32")
    for target, row in zip(array, rows, strict=False):
        if len(row):
            target[: len(row)] = row
    return array


def training_batch(windows, any_length=False):
    """The inputs and targets of windows, padded to the bucket of the longest window.

    Args:
        windows: List of `(inputs, target)`: a dict of rows of the same length; and a list with a tag for each position,
            a `TagsOfStandard`, a `kcrf.distillation.SoftTags`, or for a whole text a number or an array of numbers.
        any_length: Whether to pad to the length of the longest window instead. Defaults to False.

    Returns:
        `(inputs, targets)`: a dict of arrays `(windows, length, ...)`, padded with 0; tags `(windows, length)`, padded
        with -1; a dict of such tags by standard; results of `SoftTags.padded`; or numbers `(windows, ...)`.
    """
    inputs, targets = zip(*windows, strict=True)
    longest = max(map(row_length, inputs))
    length = longest if any_length else bucket(longest)
    return _pad_inputs(inputs, length), _pad_targets(targets, length)


def _pad_targets(targets, length):
    if isinstance(targets[0], list):
        return pad(targets, length, _UNKNOWN_TAG)
    if isinstance(targets[0], TagsOfStandard):
        rows = [target.by_standard() for target in targets]
        return {name: pad([row[name] for row in rows], length, _UNKNOWN_TAG) for name in targets[0].standards}
    if hasattr(targets[0], "padded"):
        return np.stack([target.padded(length) for target in targets])
    return np.array(targets)


def row_length(inputs):
    """The number of positions of a dict of rows."""
    return len(next(iter(inputs.values())))


def inference_batches(readings, batch_size, few_shapes=True):
    """Yields the windows of texts in batches, sorted by length to minimize padding.

    Args:
        readings: List of `kcrf.readers.Reading`.
        batch_size: The maximum number of windows per batch.
        few_shapes: Whether batches are padded to the lengths in `BUCKETS` or `LONG_BUCKETS`, and to 1, 8, 64, ... or
            `batch_size` rows, for a model that is compiled for each shape. Defaults to True.

    Yields:
        `(windows, inputs)`: a list of `(number of the text, Window)` and a dict of arrays `(rows, length, ...)`. There
        may be more rows than windows; the additional rows at the end are padding.

    Raises:
        ValueError: `batch_size` is not a positive integer.
    """
    check_batch_size(batch_size)
    windows = [(number, window) for number, reading in enumerate(readings) for window in reading.windows]
    windows.sort(key=lambda item: item[1].length)
    for first in range(0, len(windows), batch_size):
        batch = windows[first : first + batch_size]
        length, rows = max(batch[-1][1].length, 1), len(batch)  # sorted by length; an empty text has a window, too
        if few_shapes:
            length, rows = bucket(length), _row_bucket(rows, batch_size)
        yield batch, _pad_inputs([window.inputs for _, window in batch], length, rows)


def check_batch_size(batch_size):
    """Raises ValueError if a batch size is not a positive integer."""
    if not isinstance(batch_size, int | np.integer) or batch_size < 1:
        raise ValueError(f"`batch_size` must be a positive integer. Received: {batch_size!r}")


def _row_bucket(rows, batch_size):
    """The next power of 8, but not more than `batch_size`."""
    return min(batch_size, next(8**power for power in range(99) if rows <= 8**power))


def _pad_inputs(inputs, length, count=None):
    """Combines dicts of rows to a dict of arrays `(count, length, ...)`."""
    return {name: pad([window[name] for window in inputs], length, count=count) for name in inputs[0]}

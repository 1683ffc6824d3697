"""Rows of different lengths as arrays, in few lengths, since each is compiled once."""

import numpy as np

__all__ = ["BUCKETS", "bucket", "pad", "padded"]

BUCKETS = (8, 16, 32, 64, 96, 128)  # the lengths batches come in, few, since each is compiled once
_PAD, _UNKNOWN = 0, 1


def bucket(length):
    """The length to which a window of this length is padded."""
    return next(size for size in BUCKETS if length <= size)


def pad(rows, length, value=_PAD):
    """Rows of ints, or of vectors of ints, as one array `(rows, length, ...)`, filled up on the right."""
    array = np.full((len(rows), length, *np.shape(rows[0])[1:]), value, "int32")
    for target, row in zip(array, rows, strict=True):
        if len(row):
            target[: len(row)] = row
    return array


def padded(rows, length):
    """The inputs of a batch: a dict of arrays `(rows, length, ...)` from dicts of rows, filled with 0 on the right."""
    return {name: pad([row[name] for row in rows], length) for name in rows[0]}

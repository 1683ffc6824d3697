"""Reads whole texts, and pairs of texts, in one window without units to tag."""

import numpy as np

from kcrf.readers.units import Reading, Window

SEPARATOR = "\n"  # between the characters of two texts


def whole_reading(inputs):
    """The `Reading` of a text in one window with the given inputs, a dict of rows of integers."""
    return Reading(np.zeros((0, 2), np.int64), [Window(inputs, np.zeros(0, np.int64), 0, (0, 0))])


def cut_pair(first, second, room):
    """Truncates two sequences at their ends to at most `room` items in total. The longer sequence is truncated first.

    >>> cut_pair("abcdef", "xy", 5), cut_pair("abcdef", "uvwxyz", 6)
    (('abc', 'xy'), ('abc', 'uvw'))
    """
    of_second = min(len(second), max(room // 2, room - len(first)))
    return first[: room - of_second], second[:of_second]

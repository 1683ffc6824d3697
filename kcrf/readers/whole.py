"""Texts, and pairs of texts, that are read as a whole: in one window, without units to tag."""

import numpy as np

from kcrf.readers.units import Reading, Window

__all__ = ["SEPARATOR", "cut_pair", "whole_reading"]

SEPARATOR = "\n"  # between the characters of two texts


def whole_reading(inputs):
    """The `Reading` of a text in one window with these inputs, a dict of rows of ints."""
    return Reading(np.zeros((0, 2), np.int64), [Window(inputs, np.zeros(0, np.int64), 0, (0, 0))])


def cut_pair(first, second, room):
    """Two sequences, cut at their ends so that they have at most `room` items together. The longer one is cut first.

    >>> cut_pair("abcdef", "xy", 5), cut_pair("abcdef", "uvwxyz", 6)
    (('abc', 'xy'), ('abc', 'uvw'))
    """
    of_second = min(len(second), max(room // 2, room - len(first)))
    return first[: room - of_second], second[:of_second]

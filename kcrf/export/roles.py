"""The roles of tags: which begin, continue and end spans. Needs NumPy only."""

import numpy as np


def roles_of(scheme):
    """Which tags begin a span or are outside, and which tag would make a span longer.

    Args:
        scheme: A `TagScheme`.

    Returns:
        `(tags,)` bool, and `(tags,)` int32: for a tag that may be the last of a span without showing it, the tag with
        which the span would continue; -1 for other tags.

    >>> from kcrf.tags import bio
    >>> [part.tolist() for part in roles_of(bio(["X"]))]  # O, B-X, I-X
    [[True, True, False], [-1, 2, 2]]
    """
    begins, longer = np.zeros(len(scheme), bool), np.full(len(scheme), -1, "int32")
    if scheme.is_of_tokens:
        return ~begins, longer
    for label in [(name,) for name in scheme.types] or [()]:
        one, two, three = (scheme.encode([(0, length, *label)], length) for length in (1, 2, 3))
        begins[[one[0], two[0]]] = True
        for tags, longer_tags in ((one, two), (two, three)):
            if longer_tags[: len(tags)] == tags:
                longer[tags[-1]] = longer_tags[-1]
    begins[0] |= bool(scheme.types)  # outside
    return begins, longer

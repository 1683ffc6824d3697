"""The targets of a student for a sentence, in one array: tags, and expected tags and transitions of the teacher."""

from typing import NamedTuple

import numpy as np


class SoftTags(NamedTuple):
    """The target of a window.

    Attributes:
        tags: A list of ints, -1 for unknown tags.
        expected_tags: `(positions, tags)`, the teacher's marginals; zeros at positions without a tag.
        expected_steps: `(tags, tags)`, the expected count of each transition under the teacher.
    """

    tags: list
    expected_tags: np.ndarray
    expected_steps: np.ndarray

    def padded(self, length: int) -> np.ndarray:
        """The target of a window as an array `(length + tags, 1 + tags)`, padded to `length` positions.

        Keras requires a single array as the target of an output. Each of the upper rows is a position: the tag, then
        the expected tags. The lower rows are the expected transitions. `kcrf.layers.distillation.unpack_tags` is the
        inverse.
        """
        size = len(self.expected_steps)
        array = np.zeros((length + size, 1 + size), "float32")
        array[:length, 0] = -1
        array[: len(self.tags), 0] = self.tags
        array[: len(self.tags), 1:] = self.expected_tags
        array[length:, 1:] = self.expected_steps
        return array

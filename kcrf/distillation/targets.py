"""What a student learns of a sentence, as one array: its tags, and what the teacher expects of tags and steps."""

from typing import NamedTuple

import numpy as np

__all__ = ["SoftTags"]


class SoftTags(NamedTuple):
    """The target of a window.

    Attributes:
        tags: A list of ints, -1 where unknown.
        expected_tags: `(positions, tags)`, the teacher's posteriors; zeros where a position has no tag.
        expected_steps: `(tags, tags)`, how often the teacher expects each transition.
    """

    tags: list
    expected_tags: np.ndarray
    expected_steps: np.ndarray

    def padded(self, length: int) -> np.ndarray:
        """The target of a window padded to a length, `(length + tags, 1 + tags)`.

        Keras takes one array as the target of an output. Its upper rows are the positions: the tag, then the expected
        tags. The lower rows are the expected steps. `kcrf.layers.distillation.unpack_tags` is the inverse.
        """
        size = len(self.expected_steps)
        array = np.zeros((length + size, 1 + size), "float32")
        array[:length, 0] = -1
        array[: len(self.tags), 0] = self.tags
        array[: len(self.tags), 1:] = self.expected_tags
        array[length:, 1:] = self.expected_steps
        return array

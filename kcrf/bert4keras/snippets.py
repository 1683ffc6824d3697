"""bert4keras' `snippets` by their names."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kcrf import snippets
from kcrf.bert4keras.absent_names import explain_snippets as __getattr__
from kcrf.snippets import *  # noqa: F403
from kcrf.snippets import is_py2

__all__ = list(snippets.__all__)


def sequence_padding(  # type: ignore[no-redef]
    inputs: Sequence[Any],
    length: int | Sequence[int] | None = None,
    value: float = 0,
    seq_dims: int = 1,
    mode: str = "post",
    padding: float | None = None,
) -> np.ndarray:
    """`kcrf.snippets.sequence_padding`, which also takes `padding`, the name of `value` in older bert4keras.

    >>> sequence_padding([[1, 2], [3]], padding=9).tolist()
    [[1, 2], [3, 9]]
    """
    return snippets.sequence_padding(inputs, length, value if padding is None else padding, seq_dims, mode)

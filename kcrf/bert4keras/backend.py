"""bert4keras' `backend` by its names: `keras`, the `K` of Keras 2, and functions on tensors."""

from typing import Any

from kcrf import backend
from kcrf.backend import OLD_HOST, keras
from kcrf.bert4keras.absent_names import page

_absent = page("backend")
__all__ = [  # noqa: F822 (`__getattr__` finds them)
    "K",
    "batch_gather",
    "gelu_erf",
    "gelu_tanh",
    "keras",
    "multilabel_categorical_crossentropy",
    "search_layer",
    "set_gelu",
    "sparse_multilabel_categorical_crossentropy",
]


def __getattr__(name: str) -> Any:
    """The names of `kcrf.backend`; on tf_keras, all names of bert4keras' own module."""
    if name in __all__ or OLD_HOST and not name.startswith("__"):
        return getattr(backend, name)
    return _absent(name)

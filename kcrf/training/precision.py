"""The precision in which layers compute during training."""

from collections.abc import Iterator
from contextlib import contextmanager

from kcrf.backend import keras


@contextmanager
def precision(name: str) -> Iterator[None]:
    """A context whose new layers compute in this precision: "float32", "float16" or "bfloat16".

    Weights are always float32.
    """
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(name if name == "float32" else f"mixed_{name}")
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)

"""The arithmetic in which layers compute while a model is trained."""

from contextlib import contextmanager

from kcrf.backend import keras

__all__ = ["precision"]


@contextmanager
def precision(name):
    """A context in which layers are made that compute in this precision, "float32", "float16" or "bfloat16".

    Weights are float32 in each.
    """
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(name if name == "float32" else f"mixed_{name}")
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)

"""Keras' own layers under `kcrf.layers`, their old place."""

import warnings

from kcrf.backend import keras

__all__ = ["__getattr__"]


def __getattr__(name):
    """Finds a layer of Keras."""
    if name.startswith("_") or not hasattr(keras.layers, name):
        raise AttributeError(f"module 'kcrf.layers' has no attribute {name!r}")
    warnings.warn(f"kcrf.layers.{name} is now keras.layers.{name}", DeprecationWarning, stacklevel=2)
    return getattr(keras.layers, name)

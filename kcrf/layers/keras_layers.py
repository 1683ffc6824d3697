"""Keras' own layers under `kcrf.layers`, their old place; and names that have left the page of the folder."""

import warnings

from kcrf.backend import keras
from kcrf.deprecated import moved_names

__all__ = ["__getattr__"]

_moved = moved_names("kcrf.layers")


def __getattr__(name):
    """Returns a layer of Keras, or a name from its new place, with a warning."""
    if name.startswith("_") or not hasattr(keras.layers, name):
        return _moved(name)
    warnings.warn(f"kcrf.layers.{name} is now keras.layers.{name}", DeprecationWarning, stacklevel=2)
    return getattr(keras.layers, name)

"""Makes Keras' own layers available in `kcrf.layers`, as bert4keras does."""

from kcrf.backend import keras
from kcrf.bert4keras_names import explain

__all__ = ["KERAS_LAYERS", "__getattr__"]

_OURS = ("Embedding", "LayerNormalization", "MultiHeadAttention")  # of kcrf.layers, by names that Keras has too
KERAS_LAYERS = tuple(name for name in dir(keras.layers) if name[0].isupper() and name not in _OURS)


def __getattr__(name):
    """Finds names that `kcrf.layers` does not define."""
    if name.startswith("_") or not hasattr(keras.layers, name):
        raise explain("layers", name)
    return getattr(keras.layers, name)

"""Names that only scripts of bert4keras need, in their old place."""

from kcrf.deprecated import moved_names

__all__ = ["__getattr__"]

_MOVED = ("K", "Keras2Model", "Model", "keras", "load_bert4keras_weights")
__getattr__ = moved_names("kcrf.models", dict.fromkeys(_MOVED, "kcrf.bert4keras.models"))

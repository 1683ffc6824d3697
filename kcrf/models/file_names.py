"""Names of files as scripts of Keras 2 give them, for models with layers of kcrf.

Keras 3 saves weights only under names that end in `.weights.h5`, and models under `.keras`. Scripts for bert4keras say
`model.save_weights("best_model.weights")`, on a `keras.Model` that they make themselves. So these three methods of
`keras.Model` are wrapped, and change the name if the model has a layer of kcrf; all other models are left alone. So is
`keras.models.load_model`: where there is no file "test.model" but one of the name that `save` gave it, it reads that.
"""

import os
import warnings
from functools import wraps

from kcrf.backend import OLD_HOST, keras

__all__ = ["accept_names_of_keras_2", "has_layer_of_kcrf"]

_ENDINGS = {"save_weights": (".weights.h5",), "load_weights": (".weights.h5", ".keras"), "save": (".keras", ".h5")}


def accept_names_of_keras_2():
    """Wraps these methods of `keras.Model`, and `load_model`, once. Does nothing under tf_keras."""
    if OLD_HOST:
        return
    for name in _ENDINGS:
        method = getattr(keras.Model, name)
        if method.__module__ != __name__:
            setattr(keras.Model, name, _with_accepted_names(method, name))
    for module in (keras.models, keras.saving):
        if module.load_model.__module__ != __name__:
            module.load_model = _with_accepted_name(module.load_model)


def _with_accepted_names(method, name):
    @wraps(method)
    def call(self, filepath, *args, **kwargs):
        path = os.fspath(filepath) if isinstance(filepath, os.PathLike) else filepath
        if isinstance(path, str) and not path.endswith(_ENDINGS[name]) and has_layer_of_kcrf(self):
            filepath = _name_of_keras_3(name, path, _ENDINGS[name][0])
        return method(self, filepath, *args, **kwargs)

    call.__module__ = __name__
    return call


def _with_accepted_name(load_model):
    @wraps(load_model)
    def call(filepath, *args, **kwargs):
        path = os.fspath(filepath) if isinstance(filepath, os.PathLike) else filepath
        if isinstance(path, str) and not path.endswith(_ENDINGS["save"]) and not os.path.exists(path):
            saved = _with_ending(path, ".keras")
            filepath = saved if os.path.exists(saved) else filepath
        return load_model(filepath, *args, **kwargs)

    call.__module__ = __name__
    return call


def _with_ending(path, ending):
    """The name with the ending of Keras 3 in place of that of Keras 2."""
    return next((path.removesuffix(old) for old in (".weights", ".model", ".h5") if path.endswith(old)), path) + ending


def _name_of_keras_3(method, path, ending):
    """The name with the ending of Keras 3 in place of that of Keras 2. Warns, or refuses a file of Keras 2."""
    new = _with_ending(path, ending)
    if method == "load_weights" and not os.path.exists(new):
        if os.path.exists(path) or os.path.exists(f"{path}.index"):
            raise ValueError(
                f"{path} is a file of Keras 2: kcrf.models.load_bert4keras_weights(model, {path!r}) reads it, with "
                f"`lr_multiplier` for a model with a CRF. Received: load_weights({path!r})"
            )
        return path  # Keras says what is wrong
    if method != "load_weights":
        warnings.warn(f"{method}({path!r}) writes {new!r}: names of Keras 3 end in {ending}", stacklevel=3)
    return new


def has_layer_of_kcrf(model):
    """Whether one of the model's layers, inside others too, is of this package."""
    return any(type(layer).__module__.split(".")[0] == "kcrf" for layer in model._flatten_layers())

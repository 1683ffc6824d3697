"""Learning-rate multipliers next to the weights in HDF5 files of tf_keras, which hold arrays by their order alone.

A CRF stores its scores divided by `lr_multiplier`. Keras 3 and ".weights.h5" files let a layer store the number with
them; for `model.save_weights("best_model.h5")` of tf_keras it becomes an attribute of the file, which others ignore.
"""

import json
import warnings
from functools import wraps
from pathlib import Path

import numpy as np

from kcrf.backend import keras, ops, own_trainable_variables
from kcrf.bert4keras.weights import implausible_score
from kcrf.layers.learning_rates import LayerWithMultiplier
from kcrf.models.weight_files import is_hdf5

__all__ = ["changes_of_weight_files"]

_ATTRIBUTE = "kcrf_lr_multipliers"


def changes_of_weight_files():
    """The changes to the `Model` of tf_keras, as `(owner, name, value)`."""
    yield keras.Model, "save_weights", _saving(keras.Model.save_weights)
    yield keras.Model, "load_weights", _loading(keras.Model.load_weights)


def _saving(method):
    @wraps(method)
    def save_weights(self, filepath, *args, **kwargs):
        result = method(self, filepath, *args, **kwargs)
        layers = _layers(self)
        if layers and _is_hdf5(filepath):
            import h5py

            with h5py.File(filepath, "r+") as file:
                file.attrs[_ATTRIBUTE] = json.dumps({layer.name: float(layer.multiplier) for layer in layers})
        return result

    return save_weights


def _loading(method):
    @wraps(method)
    def load_weights(self, filepath, *args, **kwargs):
        result = method(self, filepath, *args, **kwargs)
        saved = _saved(filepath) if _is_hdf5(filepath) else {}
        for layer in [] if str(filepath).endswith(".weights.h5") else _layers(self):
            if layer.name in saved:
                _rescale(layer, saved[layer.name])
            else:
                _check(layer, filepath)
        return result

    return load_weights


def _layers(model):
    return [layer for layer in model._flatten_layers() if isinstance(layer, LayerWithMultiplier) and layer.built]


def _is_hdf5(path):
    """Whether this is a file of `save_weights` in HDF5, other than ".weights.h5", where layers store for themselves."""
    return not str(path).endswith(".weights.h5") and is_hdf5(Path(path))


def _saved(path):
    import h5py

    with h5py.File(path, "r") as file:
        return json.loads(file.attrs.get(_ATTRIBUTE, "{}"))


def _rescale(layer, saved):
    if np.float32(saved) == np.float32(layer.multiplier):
        return
    for stored in own_trainable_variables(layer):
        stored.assign(ops.convert_to_tensor(stored) * (saved / float(layer.multiplier)))
    warnings.warn(
        f"`{layer.name}` was saved with lr_multiplier={saved:g} and has {float(layer.multiplier):g} now. Its weights "
        "were rescaled, so it computes what it did.",
        stacklevel=3,
    )


def _check(layer, path):
    """Warns if the file does not tell its multiplier and the scores are implausible for a trained layer."""
    for stored in own_trainable_variables(layer):
        largest = implausible_score(ops.convert_to_numpy(stored) * float(layer.multiplier))
        if largest is not None:
            warnings.warn(
                f"The largest score of `{layer.name}` is {largest:.3g}, implausible for a trained layer: the file may "
                f"come from a layer with another multiplier than {float(layer.multiplier):g}, which it does not tell. "
                f"kcrf.bert4keras.models.load_bert4keras_weights(model, {str(path)!r}, lr_multiplier=...) takes it.",
                stacklevel=4,
            )
            return

"""File names of Keras 2 for models with layers of kcrf: Keras 3 wants `.weights.h5` and `.keras`.

`save("test.model")` writes "test.keras", which `load_model("test.model")` reads if there is no file "test.model".
"""

import os
import warnings
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

from kcrf.backend import keras
from kcrf.bert4keras.weights import is_hdf5

_ENDINGS = {"save_weights": (".weights.h5",), "load_weights": (".weights.h5", ".keras"), "save": (".keras", ".h5")}


def changes() -> Iterator[tuple[Any, str, Any]]:
    """The changes to Keras, as `(owner, name, value)`."""
    for name in _ENDINGS:
        yield keras.Model, name, _with_accepted_names(getattr(keras.Model, name), name)
    for module in (keras.models, keras.saving):
        yield module, "load_model", _with_accepted_name(module.load_model)


def _with_accepted_names(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(method)
    def call(self: Any, filepath: Any, *args: Any, **kwargs: Any) -> Any:
        path = os.fspath(filepath) if isinstance(filepath, os.PathLike) else filepath
        accepted = _ENDINGS[name] if name != "save" or _fits_in_hdf5(self) else (".keras",)
        if isinstance(path, str) and not path.endswith(accepted) and has_layer_of_kcrf(self):
            filepath = _name_of_keras_3(name, path, _ENDINGS[name][0])
        return method(self, filepath, *args, **kwargs)

    return call


def _with_accepted_name(load_model: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(load_model)
    def call(filepath: Any, *args: Any, **kwargs: Any) -> Any:
        path = os.fspath(filepath) if isinstance(filepath, os.PathLike) else filepath
        if isinstance(path, str) and not path.endswith(".keras"):
            existing = [name for name in (_with_ending(path, ".keras"), path) if os.path.exists(name)]
            filepath = _newest(existing, f"load_model({path!r})") if existing else filepath
        return load_model(filepath, *args, **kwargs)

    return call


def _with_ending(path: str, ending: str) -> str:
    return next((path.removesuffix(old) for old in (".weights", ".model", ".h5") if path.endswith(old)), path) + ending


def _name_of_keras_3(method: str, path: str, ending: str) -> str:
    """The file name with the suffix of Keras 3. Warns, or refuses a file of Keras 2."""
    new = _with_ending(path, ending)
    if method != "load_weights":
        warnings.warn(f"{method}({path!r}) writes {new!r}: names of Keras 3 end in {ending}", stacklevel=3)
        return new
    written = (new, _with_ending(path, ".keras"))
    existing = [name for name in written if os.path.exists(name)] + ([path] if _is_hdf5_of_keras_3(path) else [])
    if not existing:
        if os.path.exists(path) or os.path.exists(f"{path}.index"):
            raise ValueError(
                f"{path} is a file of Keras 2: kcrf.bert4keras.models.load_bert4keras_weights(model, {path!r}) reads "
                f"it, with `lr_multiplier` for a model with a CRF. Received: load_weights({path!r})"
            )
        raise FileNotFoundError(f"No weights are saved as {' or '.join(written)}. Received: load_weights({path!r})")
    return _newest(existing, f"load_weights({path!r})")


def _newest(files: list[str], call: str) -> str:
    """The file that was written last. Warns if there are several."""
    newest = max(files, key=os.path.getmtime)
    if len(files) > 1:
        warnings.warn(f"{call} reads {newest!r}, the newest of {files}", stacklevel=4)
    return newest


def _is_hdf5_of_keras_3(path: str) -> bool:
    """Whether `model.save(path)` of Keras 3 wrote this file."""
    if not path.endswith(".h5") or not is_hdf5(Path(path)):
        return False
    import h5py

    with h5py.File(path) as file:
        return str(file.attrs.get("keras_version", "")).startswith("3.")


def _fits_in_hdf5(model: Any) -> bool:
    """Whether Keras can load the model from an HDF5 file: no operation computes a mask, as that of an encoder."""
    layers = list(model._flatten_layers())
    operations = [operation for layer in layers for operation in getattr(layer, "operations", ())]
    is_refused = any(getattr(layer, "mask_is_computed", False) for layer in layers)  # by a CRF, also in a Sequential
    return not is_refused and all(isinstance(operation, keras.layers.Layer) for operation in operations)


def has_layer_of_kcrf(model: Any) -> bool:
    """Whether one of the model's layers, inside others too, is of this package."""
    return any(type(layer).__module__.split(".")[0] == "kcrf" for layer in model._flatten_layers())

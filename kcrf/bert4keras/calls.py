"""Calls of Keras 2 for models with layers of kcrf: accepted if they have one meaning; an error names the new call.

`fit` and `train_on_batch` refuse, or warn of, mistakes that Keras 3 accepts in silence. File names get the endings of
Keras 3: `save("test.model")` writes "test.keras", which `load_model("test.model")` reads unless "test.model" exists.
"""

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import wraps
from inspect import signature
from pathlib import Path
from types import MethodType
from typing import Any, NoReturn

import h5py
import numpy as np

from kcrf.backend import backend_name, batch_stream, keras
from kcrf.backend.keras3 import Functional
from kcrf.bert4keras.k import having
from kcrf.bert4keras.weights import is_hdf5
from kcrf.layers.checks import check_fit

PARTS_OF_LAYERS = "embeddings convolutional core merge normalization pooling recurrent wrappers".split()
_QUEUE = ("max_queue_size", "workers", "use_multiprocessing")  # arguments without an effect
_ARGUMENTS = {  # of the calls of Keras 2, in their order
    "fit": "steps_per_epoch epochs verbose callbacks validation_data validation_steps validation_freq class_weight "
    "max_queue_size workers use_multiprocessing shuffle initial_epoch",
    "evaluate": "steps callbacks max_queue_size workers use_multiprocessing verbose",
    "predict": "steps callbacks max_queue_size workers use_multiprocessing verbose",
}
_ENDINGS = {"save_weights": (".weights.h5",), "load_weights": (".weights.h5", ".keras"), "save": (".keras", ".h5")}
# The models that are being fitted, the innermost last.
_running: ContextVar[tuple[Any, ...]] = ContextVar("running", default=())


def changes() -> Iterator[tuple[Any, str, Any]]:
    """The changes to Keras, as `(owner, name, value)`; an owner is an object or, for `sys.modules`, a dict."""
    yield keras.Model, "fit", _checked(keras.Model.fit, _refuse_nothing_to_train)
    yield keras.Model, "train_on_batch", _checked(keras.Model.train_on_batch, _sync_shared_weights)
    for name, arguments in _ARGUMENTS.items():
        yield keras.Model, f"{name}_generator", _OldMethod(_on_generator(name, arguments.split()))
    for name in _ENDINGS:
        yield keras.Model, name, _with_accepted_names(getattr(keras.Model, name), name)
    for module in (keras.models, keras.saving):
        yield module, "load_model", _with_accepted_name(module.load_model)
    yield keras.Model, "_make_train_function", _OldMethod(_make_train_function)
    for name in ("predict", "predict_on_batch"):
        yield keras.Model, name, _with_lists(getattr(keras.Model, name))
    callback = keras.callbacks.Callback
    yield callback, "model", callback.model.setter(lambda self, model: self.set_model(model))
    yield keras.layers.Layer, "get_output_at", get_output_at
    yield keras.layers.Layer, "output_mask", property(output_mask)
    yield Functional, "add_loss", add_loss
    yield keras.utils, "multi_gpu_model", multi_gpu_model
    for part in PARTS_OF_LAYERS:
        yield sys.modules, f"keras.layers.{part}", keras.layers
    yield sys.modules, "keras.utils.np_utils", keras.utils


class _OldMethod:
    """A method that models with a layer of kcrf have, and no other model."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __get__(self, model: Any, owner: Any = None) -> Any:
        if model is None or not has_layer_of_kcrf(model):
            name = owner.__name__ if model is None else type(model).__name__
            raise AttributeError(f"{name!r} object has no attribute {self.function.__name__!r}")
        return MethodType(self.function, model)


def _on_generator(name: str, arguments: list[str]) -> Callable[..., Any]:
    """`fit`, `evaluate` or `predict` with the arguments of Keras 2."""

    def call(self: Any, generator: Any, *args: Any, **kwargs: Any) -> Any:
        given = dict(zip(arguments[: len(args)], args, strict=True)) | kwargs
        options = {"verbose": int(name == "fit"), **{k: value for k, value in given.items() if k not in _QUEUE}}
        if "validation_data" in options:
            options["validation_data"] = _stream(options["validation_data"])
        return getattr(self, name)(_stream(generator), **options)

    call.__name__ = f"{name}_generator"
    return call


def _checked(method: Any, prepare: Callable[[Any], None]) -> Any:
    """The method, for models with a layer of kcrf after `prepare(model)` and the checks of `check_fit`."""
    parameters = signature(method)

    @wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not has_layer_of_kcrf(self):
            return method(self, *args, **kwargs)
        prepare(self)
        arguments = parameters.bind(self, *args, **kwargs).arguments
        check_fit(self, arguments.get("x"), arguments.get("y"), arguments.get("class_weight"))
        with having(_running, (*_running.get(), self)):
            return method(self, *args, **kwargs)

    return call


def _refuse_nothing_to_train(model: Any) -> None:
    if model.weights and not model.trainable_weights:
        raise ValueError(
            "`fit` needs a layer that is trainable. Keras 3 looks for it now, not at `compile` as Keras 2; models "
            "by `from kcrf.bert4keras.models import Keras2Model as Model` train what was trainable when they were "
            "compiled. Received: a model whose layers are all frozen, perhaps for another model that shares them"
        )


def _sync_shared_weights(model: Any) -> None:
    """For `train_on_batch` in a callback: on JAX the model that is being fitted has the values of shared weights."""
    fitted = _running.get()[-1:]
    if backend_name() == "jax" and fitted and fitted[0] is not model:
        fitted[0].jax_state_sync()


def _stream(batches: Any) -> Any:
    """Converts batches of lists, of an iterator or a `Sequence`, to what Keras 3 takes; returns the rest unchanged."""
    if isinstance(batches, keras.utils.Sequence):
        return _Tuples(batches)
    return batch_stream(batches) if hasattr(batches, "__next__") else batches


class _Tuples(keras.utils.Sequence):
    """A `Sequence` with tuples of arrays for the lists of another one, which Keras 3 refuses on TensorFlow."""

    def __init__(self, dataset: Any) -> None:
        super().__init__(dataset.workers, dataset.use_multiprocessing, dataset.max_queue_size)
        self._dataset = dataset
        self.on_epoch_begin, self.on_epoch_end = dataset.on_epoch_begin, dataset.on_epoch_end

    @property
    def num_batches(self) -> Any:
        return self._dataset.num_batches

    def __getitem__(self, index: int) -> Any:
        batch = self._dataset[index]
        if not isinstance(batch, (list, tuple)):
            return batch
        are_arrays = [isinstance(part, list) and all(hasattr(array, "shape") for array in part) for part in batch]
        return tuple(tuple(part) if several else part for part, several in zip(batch, are_arrays, strict=True))


def _make_train_function(self: Any) -> NoReturn:
    raise NotImplementedError(
        "Keras 3 has no train function of a graph that another could replace. For adversarial training, call after "
        "`model.compile`, in place of your own function, one of kcrf.bert4keras.adversarial: adversarial(model, "
        "'Embedding-Token', epsilon), virtual_adversarial(model, 'Embedding-Token') or gradient_penalty(model, "
        "'Embedding-Token', scale). Received: model._make_train_function()"
    )


def _with_lists(method: Any) -> Any:
    """The method, which takes lists of numbers as arrays, one for each input of the model."""

    @wraps(method)
    def call(self: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(x, list) and x and isinstance(x[0], (list, int, float)) and has_layer_of_kcrf(self):
            x = [np.array(part) for part in x] if len(self.inputs) > 1 else np.array(x)
        return method(self, x, *args, **kwargs)

    return call


def get_output_at(self: Any, node_index: int) -> Any:
    """The symbolic output of one of the calls of a layer: ALBERT calls its layers once for each transformer layer."""
    nodes = self._inbound_nodes
    if not -len(nodes) <= node_index < len(nodes):
        raise ValueError(f"`{self.name}` was called {len(nodes)} times. Received: node_index={node_index}")
    outputs = nodes[node_index].outputs
    return outputs[0] if len(outputs) == 1 else outputs


def output_mask(self: Any) -> Any:
    """The symbolic mask of the output of a layer, None without a mask."""
    outputs = self.output if isinstance(self.output, list) else [self.output]
    masks = [getattr(tensor, "_keras_mask", None) for tensor in outputs]
    return masks if isinstance(self.output, list) else masks[0]


def add_loss(self: Any, loss: Any) -> NoReturn:
    """Raises an error that names the layer to use: Keras 3 cannot add a symbolic loss to a model that exists."""
    raise NotImplementedError(
        "Keras 3 takes no symbolic loss for a model. Compute the loss in a layer: subclass "
        "`kcrf.bert4keras.layers.Loss`, return the loss from `compute_loss(self, inputs, mask=None)`, call the layer "
        "on the tensors that the loss needs, and build the model from the layer's output. Received: "
        f"{self.name}.add_loss({loss})"
    )


def multi_gpu_model(model: Any, gpus: Any = None, **options: Any) -> NoReturn:
    """Raises an error that names what replaces `keras.utils.multi_gpu_model`."""
    raise NotImplementedError(
        "Keras 3 has no `multi_gpu_model`: build the model under `with tf.distribute.MirroredStrategy().scope():` "
        "(TensorFlow), or call `keras.distribution.set_distribution(keras.distribution.DataParallel())` before the "
        f"model is built (JAX). Received: multi_gpu_model({model.name!r}, gpus={gpus})"
    )


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
    with h5py.File(path) as file:
        return str(file.attrs.get("keras_version", "")).startswith("3.")


def _fits_in_hdf5(model: Any) -> bool:
    """Whether Keras can load the model from an HDF5 file: no operation computes a mask, as encoders do."""
    layers = list(model._flatten_layers())
    operations = [operation for layer in layers for operation in getattr(layer, "operations", ())]
    is_refused = any(getattr(layer, "mask_is_computed", False) for layer in layers)  # by a CRF, also in a Sequential
    return not is_refused and all(isinstance(operation, keras.layers.Layer) for operation in operations)


def has_layer_of_kcrf(model: Any) -> bool:
    """Whether one of the model's layers, inside others too, is of this package."""
    return any(type(layer).__module__.split(".")[0] == "kcrf" for layer in model._flatten_layers())

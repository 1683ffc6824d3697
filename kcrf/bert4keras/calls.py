"""Calls of Keras 2 for models with layers of kcrf: accepted if they have one meaning; an error names the new call."""

import sys
from collections.abc import Iterator
from functools import wraps
from types import MethodType
from typing import Any

import numpy as np

from kcrf.backend import batch_stream, keras
from kcrf.backend.keras3 import Functional
from kcrf.bert4keras.file_names import has_layer_of_kcrf

PARTS_OF_LAYERS = "embeddings convolutional core merge normalization pooling recurrent wrappers".split()


def changes() -> Iterator[Any]:
    """The changes to Keras, as `(owner, name, value)`; an owner is an object or, for `sys.modules`, a dict."""
    for method in (fit_generator, evaluate_generator, predict_generator, _make_train_function):
        yield keras.Model, method.__name__, _OldMethod(method)
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


def fit_generator(
    self,
    generator: Any,
    steps_per_epoch: Any = None,
    epochs: int = 1,
    verbose: int = 1,
    callbacks: Any = None,
    validation_data: Any = None,
    validation_steps: Any = None,
    validation_freq: int = 1,
    class_weight: Any = None,
    max_queue_size: int = 10,
    workers: int = 1,
    use_multiprocessing: bool = False,
    shuffle: bool = True,
    initial_epoch: int = 0,
) -> Any:
    """`fit` with the arguments of Keras 2; those about queues and workers have no effect."""
    return self.fit(
        _stream(generator),
        steps_per_epoch=steps_per_epoch,
        epochs=epochs,
        verbose=verbose,
        callbacks=callbacks,
        validation_data=_stream(validation_data),
        validation_steps=validation_steps,
        validation_freq=validation_freq,
        class_weight=class_weight,
        shuffle=shuffle,
        initial_epoch=initial_epoch,
    )


def evaluate_generator(
    self,
    generator: Any,
    steps: int | None = None,
    callbacks: Any = None,
    *queue: Any,
    verbose: int = 0,
    **queue_options: Any,
) -> Any:
    """`evaluate` with the arguments of Keras 2."""
    return self.evaluate(_stream(generator), steps=steps, callbacks=callbacks, verbose=verbose)


def predict_generator(
    self,
    generator: Any,
    steps: int | None = None,
    callbacks: Any = None,
    *queue: Any,
    verbose: int = 0,
    **queue_options: Any,
) -> Any:
    """`predict` with the arguments of Keras 2."""
    return self.predict(_stream(generator), steps=steps, callbacks=callbacks, verbose=verbose)


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
        return tuple(tuple(part) if isinstance(part, list) and _are_arrays(part) else part for part in batch)


def _are_arrays(part: Any) -> bool:
    return all(hasattr(array, "shape") for array in part)


def _make_train_function(self) -> None:
    raise NotImplementedError(
        "Keras 3 has no train function of a graph that another could replace. For adversarial training, call after "
        "`model.compile`, in place of your own function, one of kcrf.bert4keras.adversarial: adversarial(model, "
        "'Embedding-Token', epsilon), virtual_adversarial(model, 'Embedding-Token') or gradient_penalty(model, "
        "'Embedding-Token', scale). Received: model._make_train_function()"
    )


def _with_lists(method: Any) -> Any:
    @wraps(method)
    def call(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        return method(self, _as_arrays(self, x), *args, **kwargs)

    return call


def _as_arrays(model: Any, x: Any) -> Any:
    """Lists of numbers as arrays, one for each input of the model."""
    if not isinstance(x, list) or not x or not isinstance(x[0], (list, int, float)) or not has_layer_of_kcrf(model):
        return x
    return [np.array(part) for part in x] if len(model.inputs) > 1 else np.array(x)


def get_output_at(self, node_index: Any) -> Any:
    """The symbolic output of one of the calls of a layer: ALBERT calls its layers once for each transformer layer."""
    nodes = self._inbound_nodes
    if not -len(nodes) <= node_index < len(nodes):
        raise ValueError(f"`{self.name}` was called {len(nodes)} times. Received: node_index={node_index}")
    outputs = nodes[node_index].outputs
    return outputs[0] if len(outputs) == 1 else outputs


def output_mask(self) -> Any:
    """The symbolic mask of the output of a layer, None without a mask."""
    masks = [getattr(tensor, "_keras_mask", None) for tensor in _as_list(self.output)]
    return masks if isinstance(self.output, list) else masks[0]


def _as_list(output: Any) -> Any:
    return output if isinstance(output, list) else [output]


def add_loss(self, loss: Any) -> None:
    """Raises an error that names the layer to use: Keras 3 cannot add a symbolic loss to a model that exists."""
    raise NotImplementedError(
        "Keras 3 takes no symbolic loss for a model. Compute the loss in a layer: subclass "
        "`kcrf.bert4keras.layers.Loss`, return the loss from `compute_loss(self, inputs, mask=None)`, call the layer "
        "on the tensors that the loss needs, and build the model from the layer's output. Received: "
        f"{self.name}.add_loss({loss})"
    )


def multi_gpu_model(model: Any, gpus: Any = None, **options: Any) -> None:
    """Raises an error that names what replaces `keras.utils.multi_gpu_model`."""
    raise NotImplementedError(
        "Keras 3 has no `multi_gpu_model`: build the model under `with tf.distribute.MirroredStrategy().scope():` "
        "(TensorFlow), or call `keras.distribution.set_distribution(keras.distribution.DataParallel())` before the "
        f"model is built (JAX). Received: multi_gpu_model({model.name!r}, gpus={gpus})"
    )

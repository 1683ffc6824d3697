"""Weights of whole models that bert4keras scripts wrote, loaded into models of Keras 3."""

import warnings
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from kcrf.backend import ops
from kcrf.bert4keras.weight_files import leaf_name, read_layers
from kcrf.layers.dense import MixoutDense
from kcrf.layers.learning_rates import LayerWithMultiplier, SetLearningRate

__all__ = ["implausible_score", "load_bert4keras_weights"]

_ONLY_HERE = ("lr_multiplier", "prior", "start", "end")  # weights that bert4keras' layers do not have
_PLAUSIBLE = 0.01, 100.0  # range of the largest transition score of a trained CRF, in nats


def load_bert4keras_weights(model: Any, path: str | PathLike[str], lr_multiplier: float | None = None) -> None:
    """Loads what `model.save_weights` of a bert4keras script wrote: HDF5, or TensorFlow's files.

    Layers with their own name get their weights by name, the others in their order. Keras' own `load_weights` would
    assign all weights by order, but bert4keras' LayerNormalization has beta before gamma.

    Args:
        model: The same model, built by kcrf. If the file does not fit it, it keeps its weights.
        path: An HDF5 file ("best_model.h5"), or the prefix of TensorFlow's files ("best_model.weights").
        lr_multiplier: What the script gave its `ConditionalRandomField`, 1 if nothing. Required with such a layer: the
            file stores the transitions divided by it. The layer here may have another one.
    """
    stored = read_layers(Path(path))
    wrapped = [layer.name for layer in model._flatten_layers() if isinstance(layer, SetLearningRate)]
    if wrapped:
        raise ValueError(
            "`load_bert4keras_weights` needs a model without `SetLearningRate`, which stores weights divided by its "
            "multiplier: the file does not say whether its weights are divided. Load them first and wrap the layers "
            f"afterwards; a built layer keeps its outputs when it is wrapped. Received: `{wrapped[0]}`"
        )
    layers = [layer for layer in model.layers if _stored_variables(layer)]
    divided = [layer for layer in layers if isinstance(layer, LayerWithMultiplier)]
    if divided and lr_multiplier is None:
        raise ValueError(
            f"`lr_multiplier` must say what `{divided[0].name}` had in the script that wrote {path} (1 if nothing was "
            "given): its transitions are stored divided by it. Received: lr_multiplier=None"
        )
    changes = []
    for layer, (name, weights) in _pair_layers(layers, stored, path):
        for variable, array in _pair_weights(layer, name, weights, path):
            if layer in divided and lr_multiplier is not None:
                _warn_if_implausible(layer, array * lr_multiplier, lr_multiplier)
                array = array * (lr_multiplier / float(ops.convert_to_numpy(layer.multiplier)))
            changes.append((variable, array))
    for variable, array in changes:
        variable.assign(array)
    for layer in model._flatten_layers():
        if isinstance(layer, MixoutDense):
            layer.prior.assign(ops.copy(layer.kernel))  # what mixout goes back to
    for variable in (v for layer in divided for v in layer.weights if leaf_name(v.name) in ("start", "end")):
        variable.assign(np.zeros(variable.shape))


def _stored_variables(layer: Any) -> list[Any]:
    """The variables of a layer that bert4keras stores too."""
    return [v for v in layer.weights if leaf_name(v.name) not in _ONLY_HERE]


def _pair_layers(layers: Any, stored: Any, path: Any) -> Any:
    """Pairs each layer of the model with one of the file: by name where it was given by hand, else by order."""
    named = {name: (name, weights) for name, weights in stored if name and _is_given(name)}
    pairs = [(layer, named.pop(layer.name)) for layer in layers if layer.name in named]
    paired = {layer.name for layer, _ in pairs}
    layers_left = [layer for layer in layers if layer.name not in paired]
    stored_left = [(name, weights) for name, weights in stored if name not in paired]
    if len(layers_left) != len(stored_left):
        raise ValueError(
            f"{path}: needs weights for the layers {[layer.name for layer in layers_left]}. Received: weights of "
            f"{[name or weights[0][0] for name, weights in stored_left]}"
        )
    return pairs + list(zip(layers_left, stored_left))


def _is_given(name: str) -> Any:
    """Whether a layer's name was given by hand. Keras makes up names in lower case, such as dense_1."""
    return name != name.lower() or "-" in name


def _pair_weights(layer: Any, name: str, weights: Any, path: Any) -> Any:
    """Pairs the variables of a layer with arrays: by name if both have the same names, else by order."""
    variables = _stored_variables(layer)
    leaves = [leaf_name(weight) for weight, _ in weights]
    if sorted(leaves) == sorted(leaf_name(v.name) for v in variables):
        # A name may occur several times in a layer, as the kernels of attention: these are taken in their order.
        arrays = {leaf: iter([array for (_, array), own in zip(weights, leaves) if own == leaf]) for leaf in leaves}
        pairs = [(variable, next(arrays[leaf_name(variable.name)])) for variable in variables]
    else:
        pairs = list(zip(variables, (array for _, array in weights)))
    if len(variables) != len(weights) or any(tuple(v.shape) != a.shape for v, a in pairs):
        raise ValueError(
            f"{path}: `{layer.name}` needs {[(v.name, tuple(v.shape)) for v in variables]}. Received: for "
            f"{name or 'the layer in its place'} {[(leaf, a.shape) for leaf, (_, a) in zip(leaves, weights)]}"
        )
    return pairs


def implausible_score(scores: Any) -> Any:
    """The largest absolute score if a trained CRF would not have it, else None."""
    largest = float(np.abs(scores).max())
    return None if _PLAUSIBLE[0] <= largest <= _PLAUSIBLE[1] else largest


def _warn_if_implausible(layer: Any, scores: Any, lr_multiplier: Any) -> None:
    largest = implausible_score(scores)
    if largest is not None:
        warnings.warn(
            f"The largest score of `{layer.name}` is {largest:.3g}, implausible for a trained layer: the script that "
            f"wrote the file may have had another multiplier. Received: lr_multiplier={lr_multiplier}",
            stacklevel=3,
        )

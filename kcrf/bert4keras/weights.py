"""Weights that bert4keras scripts wrote: HDF5 files, or checkpoints of Python objects, read without TensorFlow."""

import re
import warnings
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from kcrf.backend import ops
from kcrf.checkpoints.tensor_bundle import RawArray, read_tensor_bundle
from kcrf.layers.dense import MixoutDense
from kcrf.layers.learning_rates import LayerWithMultiplier, SetLearningRate

_HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_OBJECT_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"
_NUMBERED_LAYER = re.compile(rf"layer_with_weights-(\d+)/(.+){re.escape(_OBJECT_SUFFIX)}$")
# The parts of a layer in the order of its weights; TensorFlow stores them by name.
_PARTS_IN_ORDER = (
    "p_dense q_dense k_dense v_dense i0_dense o_dense forward_layer backward_layer hidden_dense beta_dense gamma_dense"
).split()
_ONLY_HERE = ("lr_multiplier", "prior", "start", "end")  # weights that bert4keras' layers do not have
_PLAUSIBLE = 0.01, 100.0  # range of the largest transition score of a trained CRF, in nats


def load_bert4keras_weights(model: Any, path: str | PathLike[str], lr_multiplier: float | None = None) -> None:
    """Loads what `model.save_weights` of a bert4keras script wrote: HDF5, or TensorFlow's files.

    Layers with their own name get their weights by name, the others in their order. Keras' own `load_weights` would
    assign all weights by order, but bert4keras' LayerNormalization has beta before gamma.

    Args:
        model: The same model, built by kcrf. If the file does not fit it, it keeps its weights.
        path: An HDF5 file ("best_model.h5"), or the prefix of TensorFlow's files ("best_model.weights").
        lr_multiplier: The `lr_multiplier` of the script's `ConditionalRandomField`, 1 by default. Required with such a
            layer: the file stores the transitions divided by it. The layer here may have another one.
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
    return [v for v in layer.weights if leaf_name(v.name) not in _ONLY_HERE]


def _pair_layers(layers: list[Any], stored: list[Any], path: object) -> list[tuple[Any, Any]]:
    """Pairs each layer of the model with one of the file: by name where it was given by hand, else by order."""
    # Keras makes up names in lower case, such as dense_1
    named = {name: (name, weights) for name, weights in stored if name and (name != name.lower() or "-" in name)}
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


def _pair_weights(layer: Any, name: str | None, weights: list[Any], path: object) -> list[tuple[Any, np.ndarray]]:
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


def _warn_if_implausible(layer: Any, scores: np.ndarray, lr_multiplier: float) -> None:
    largest = float(np.abs(scores).max())
    if not _PLAUSIBLE[0] <= largest <= _PLAUSIBLE[1]:
        warnings.warn(
            f"The largest score of `{layer.name}` is {largest:.3g}, implausible for a trained layer: the script that "
            f"wrote the file may have had another multiplier. Received: lr_multiplier={lr_multiplier}",
            stacklevel=3,
        )


def leaf_name(name: str) -> str:
    """The name of an array within its layer: `trans` of "model_weights/CRF/CRF/trans:0"."""
    return re.split("[/.]", name.removesuffix(_OBJECT_SUFFIX).removesuffix(":0"))[-1].lstrip("_")


def read_arrays(path: Path, is_wanted: Callable[[str], bool]) -> dict[str, np.ndarray] | None:
    """Reads the wanted arrays of a weight file by their full names; None if the file is of neither kind."""
    if Path(f"{path}.index").is_file():
        return {name: entry.read() for name, entry in _read_bundle(path).items() if is_wanted(name)}
    if not is_hdf5(path):
        return None
    arrays = {}

    def collect(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and not name.startswith("optimizer") and is_wanted(name):
            arrays[name] = item[()]

    with h5py.File(path) as file:
        file.visititems(collect)
    return arrays


def read_layers(path: Path) -> list[tuple[str | None, list[tuple[str, np.ndarray]]]]:
    """Reads the layers that have weights, in the order of the model: `(layer name, [(weight name, array), ...])`.

    A TensorFlow checkpoint has numbers instead of layer names: there the name is None.
    """
    if Path(f"{path}.index").is_file():
        return _read_numbered_layers(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file, nor {path.name}.index")
    if not is_hdf5(path):
        raise ValueError(f"{path}: needs an HDF5 file. Received: another kind of file")
    with h5py.File(path) as file:
        group = file.get("model_weights", file)
        if "layer_names" not in group.attrs:
            raise ValueError(
                f"{path}: needs the HDF5 format of Keras 2. Where Keras 3 wrote it, `model.load_weights` reads it; "
                "where tf_keras did (.weights.h5), save there under another name that ends in .h5"
            )
        layers: list[tuple[str | None, list[tuple[str, np.ndarray]]]] = []
        for name in map(_as_text, group.attrs["layer_names"]):
            part = group[name]
            layers.append((name, [(_as_text(weight), part[weight][()]) for weight in part.attrs["weight_names"]]))
    return [(name, weights) for name, weights in layers if weights]


def is_hdf5(path: Path) -> bool:
    """Whether this is an HDF5 file."""
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(len(_HDF5_SIGNATURE)) == _HDF5_SIGNATURE


def _as_text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name


def _read_bundle(prefix: Path) -> dict[str, RawArray]:
    entries = read_tensor_bundle(prefix, object_based=True)
    return {name: entry for name, entry in entries.items() if "OPTIMIZER_SLOT" not in name}


def _read_numbered_layers(prefix: Path) -> list[tuple[str | None, list[tuple[str, np.ndarray]]]]:
    layers: dict[int, list[tuple[str, np.ndarray]]] = {}
    for name, entry in _read_bundle(prefix).items():
        numbered = _NUMBERED_LAYER.match(name)
        if numbered:
            layers.setdefault(int(numbered[1]), []).append((numbered[2], entry.read()))

    def order(weight: tuple[str, np.ndarray]) -> list[int]:
        return [_PARTS_IN_ORDER.index(part) for part in weight[0].split("/") if part in _PARTS_IN_ORDER]

    return [(None, sorted(layers[number], key=order)) for number in sorted(layers)]

"""Whole models' weights as Keras 2 wrote them, with bert4keras' layers among them, read into models of Keras 3."""

import re
import warnings
from pathlib import Path

import numpy as np

from kcrf.backend import ops
from kcrf.layers.learning_rates import LayerWithMultiplier

__all__ = ["load_bert4keras_weights"]

# Parts of one layer in the order of its weights, where a checkpoint of TensorFlow has them by name.
_IN_ORDER = ("q_dense", "k_dense", "v_dense", "i0_dense", "o_dense", "forward_layer", "backward_layer")
_OF_TENSORFLOW = re.compile(r"layer_with_weights-(\d+)/(.+)/\.ATTRIBUTES/VARIABLE_VALUE$")
_NOT_THERE = ("lr_multiplier", "prior", "start", "end")  # weights that layers have here and not in bert4keras
_PLAUSIBLE = 0.01, 100.0  # the largest score of transitions that mean something, in nats


def load_bert4keras_weights(model, path, lr_multiplier=None):
    """Loads what `model.save_weights` of a script for bert4keras wrote, on Keras 2 or tf_keras.

    Layers with names of their own, as all of a transformer, find their weights by name, others by their order. Keras'
    own `load_weights` is not for these files: it goes by the order of weights alone, and bert4keras' LayerNormalization
    has it the other way round.

    Args:
        model: The same model, built by kcrf.
        path: An HDF5 file ("best_model.h5"), or the prefix of TensorFlow's files, which `save_weights` of tf_keras
            makes of a name without ending ("best_model.weights" for the files "best_model.weights.index" and others;
            needs TensorFlow).
        lr_multiplier: What the script gave `ConditionalRandomField`, 1 if nothing. Needed where the model has one: the
            file has its transitions divided by that number, and not the number. The layer here may have another. A
            warning tells when the scores that come out are too large or too small to be true. Defaults to None.

    Raises:
        ValueError: The layers of file and model do not fit, a number is missing, or the file is of another kind. The
            model is then as it was.
        FileNotFoundError: There is no such file.
    """
    theirs, ours = _read(Path(path)), [layer for layer in model.layers if _wanted(layer)]
    divided = [layer for layer in ours if isinstance(layer, LayerWithMultiplier)]
    if divided and lr_multiplier is None:
        raise ValueError(
            f"`lr_multiplier` must say what `{divided[0].name}` had in the script that wrote {path} (1 if nothing was "
            "given): its transitions are stored divided by it. Received: lr_multiplier=None"
        )
    changes = []
    for layer, (name, weights) in _paired(ours, theirs, path):
        for variable, array in _matched(layer, name, weights, path):
            if layer in divided:
                _check_scores(layer, array * lr_multiplier, lr_multiplier)
                array = array * (lr_multiplier / float(ops.convert_to_numpy(layer.multiplier)))
            changes.append((variable, array))
    for variable, array in changes:
        variable.assign(array)
    for variable in (v for layer in divided for v in layer.weights if _leaf(v.name) in ("start", "end")):
        variable.assign(np.zeros(variable.shape))


def _wanted(layer):
    return [v for v in layer.weights if _leaf(v.name) not in _NOT_THERE]


def _read(path):
    """The layers with weights, in order: `(name or None, [(name of weight, array), ...])`."""
    if Path(f"{path}.index").is_file():
        return _read_tensorflow(path)
    import h5py

    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file, nor {path.name}.index")
    with h5py.File(path) as file:
        group = file.get("model_weights", file)
        if "layer_names" not in group.attrs:
            raise ValueError(
                f"{path}: needs the HDF5 format of Keras 2. Where Keras 3 wrote it, `model.load_weights` reads it; "
                "where tf_keras did (.weights.h5), save there under another name that ends in .h5"
            )
        layers = [(name, group[name]) for name in map(_text, group.attrs["layer_names"])]
        read = [(name, [(_text(w), part[w][()]) for w in part.attrs["weight_names"]]) for name, part in layers]
    return [(name, weights) for name, weights in read if weights]


def _read_tensorflow(path):
    try:
        from tensorflow.train import load_checkpoint
    except ImportError:
        raise ImportError(f"{path}: a TensorFlow checkpoint needs tensorflow to be read") from None
    reader, layers = load_checkpoint(str(path)), {}
    for name in reader.get_variable_to_shape_map():
        found = _OF_TENSORFLOW.match(name)
        if found and "OPTIMIZER_SLOT" not in name:
            layers.setdefault(int(found[1]), []).append((found[2], reader.get_tensor(name)))
    return [(None, sorted(layers[number], key=_place)) for number in sorted(layers)]


def _place(weight):
    return [_IN_ORDER.index(part) for part in weight[0].split("/") if part in _IN_ORDER]


def _text(name):
    return name.decode() if isinstance(name, bytes) else name


def _paired(ours, theirs, path):
    """Each layer of the model with one of the file: by the name that a person gave it, or in order."""
    named = {name: (name, weights) for name, weights in theirs if name and _given(name)}
    pairs = [(layer, named.pop(layer.name)) for layer in ours if layer.name in named]
    done = {layer.name for layer, _ in pairs}
    rest = [layer for layer in ours if layer.name not in done]
    left = [(name, weights) for name, weights in theirs if name not in done]
    if len(rest) != len(left):
        raise ValueError(
            f"{path}: needs weights for the layers {[layer.name for layer in rest]}. Received: weights of "
            f"{[name or weights[0][0] for name, weights in left]}"
        )
    return pairs + list(zip(rest, left))


def _given(name):
    """Whether a name is not one that Keras makes up, which are all lower case and depend on what was made before."""
    return name != name.lower() or "-" in name


def _matched(layer, name, weights, path):
    """The variables of a layer with their arrays: equal names in their order, or all in order where names differ."""
    variables = _wanted(layer)
    leaves = [_leaf(weight) for weight, _ in weights]
    if sorted(leaves) == sorted(_leaf(v.name) for v in variables):
        by_leaf = {leaf: iter([array for (_, array), own in zip(weights, leaves) if own == leaf]) for leaf in leaves}
        pairs = [(variable, next(by_leaf[_leaf(variable.name)])) for variable in variables]
    else:
        pairs = list(zip(variables, (array for _, array in weights)))
    if len(variables) != len(weights) or any(tuple(v.shape) != a.shape for v, a in pairs):
        raise ValueError(
            f"{path}: `{layer.name}` needs {[(v.name, tuple(v.shape)) for v in variables]}. Received: for "
            f"{name or 'the layer in its place'} {[(leaf, a.shape) for leaf, (_, a) in zip(leaves, weights)]}"
        )
    return pairs


def _leaf(weight):
    return weight.removesuffix(":0").rpartition("/")[2].lstrip("_")


def _check_scores(layer, scores, lr_multiplier):
    largest = float(np.abs(scores).max())
    if not _PLAUSIBLE[0] <= largest <= _PLAUSIBLE[1]:
        warnings.warn(
            f"The largest score of `{layer.name}` is {largest:.3g}, which is hardly what was learnt: the script that "
            f"wrote the file may have had another multiplier. Received: lr_multiplier={lr_multiplier}",
            stacklevel=3,
        )

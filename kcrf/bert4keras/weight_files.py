"""Reads weight files of Keras 2 and tf_keras without TensorFlow: HDF5, or a checkpoint of Python objects."""

import re
from pathlib import Path
from typing import Any

from kcrf.checkpoints.tensor_bundle import read_tensor_bundle

_HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_OBJECT_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"
_NUMBERED_LAYER = re.compile(rf"layer_with_weights-(\d+)/(.+){re.escape(_OBJECT_SUFFIX)}$")
# The parts of a layer in the order of its weights; TensorFlow stores them by name.
_PARTS_IN_ORDER: tuple[str, ...] = (
    "p_dense",
    "q_dense",
    "k_dense",
    "v_dense",
    "i0_dense",
    "o_dense",
    "forward_layer",
    "backward_layer",
)
_PARTS_IN_ORDER += ("hidden_dense", "beta_dense", "gamma_dense")


def leaf_name(name: str) -> Any:
    """The name of an array within its layer.

    >>> leaf_name("model_weights/CRF/CRF/trans:0"), leaf_name("layer-2/_trans/.ATTRIBUTES/VARIABLE_VALUE")
    ('trans', 'trans')
    """
    return re.split("[/.]", name.removesuffix(_OBJECT_SUFFIX).removesuffix(":0"))[-1].lstrip("_")


def read_arrays(path: Any, is_wanted: Any) -> Any:
    """Reads the wanted arrays of a weight file by their full names; None if the file is of neither kind."""
    if Path(f"{path}.index").is_file():
        entries = _read_bundle(path)
        return {name: entry.read() for name, entry in entries.items() if is_wanted(name)}
    if not is_hdf5(path):
        return None
    import h5py

    arrays = {}

    def collect(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and not name.startswith("optimizer") and is_wanted(name):
            arrays[name] = item[()]

    with h5py.File(path) as file:
        file.visititems(collect)
    return arrays


def read_layers(path: Any) -> Any:
    """Reads the layers that have weights, in the order of the model: `(layer name, [(weight name, array), ...])`.

    A TensorFlow checkpoint has numbers instead of layer names: there the name is None.
    """
    if Path(f"{path}.index").is_file():
        return _read_numbered_layers(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file, nor {path.name}.index")
    if not is_hdf5(path):
        raise ValueError(f"{path}: needs an HDF5 file. Received: another kind of file")
    import h5py

    with h5py.File(path) as file:
        group = file.get("model_weights", file)
        if "layer_names" not in group.attrs:
            raise ValueError(
                f"{path}: needs the HDF5 format of Keras 2. Where Keras 3 wrote it, `model.load_weights` reads it; "
                "where tf_keras did (.weights.h5), save there under another name that ends in .h5"
            )
        layers = [(name, group[name]) for name in map(_as_text, group.attrs["layer_names"])]
        read = [
            (name, [(_as_text(weight), part[weight][()]) for weight in part.attrs["weight_names"]])
            for name, part in layers
        ]
    return [(name, weights) for name, weights in read if weights]


def is_hdf5(path: Any) -> Any:
    """Whether this is an HDF5 file."""
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(len(_HDF5_SIGNATURE)) == _HDF5_SIGNATURE


def _as_text(name: str) -> Any:
    return name.decode() if isinstance(name, bytes) else name


def _read_bundle(prefix: str) -> dict[str, Any]:
    entries = read_tensor_bundle(prefix, object_based=True)
    return {name: entry for name, entry in entries.items() if "OPTIMIZER_SLOT" not in name}


def _read_numbered_layers(prefix: str) -> list[Any]:
    layers = {}
    for name, entry in _read_bundle(prefix).items():
        numbered = _NUMBERED_LAYER.match(name)
        if numbered:
            layers.setdefault(int(numbered[1]), []).append((numbered[2], entry.read()))
    return [(None, sorted(layers[number], key=_order_in_layer)) for number in sorted(layers)]


def _order_in_layer(weight: Any) -> list[Any]:
    return [_PARTS_IN_ORDER.index(part) for part in weight[0].split("/") if part in _PARTS_IN_ORDER]

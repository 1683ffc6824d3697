"""Weights of other people's CRFs and MEMMs, read into a layer: bert4keras, TensorFlow Addons, pytorch-crf."""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from kcrf.checkpoints import open_checkpoint
from kcrf.layers import MaximumEntropyMarkovModel

__all__ = ["KINDS", "load_crf_weights"]

# What each calls its scores: transitions from row to column, the scores of the first tag and of the last.
KINDS = {
    "bert4keras": ("trans", None, None),
    "tfa": ("chain_kernel", "left_boundary", "right_boundary"),
    "pytorch-crf": ("transitions", "start_transitions", "end_transitions"),
}
_LOW_RANK = ("l_trans", "r_trans")  # bert4keras' MEMM with a `hidden_dim`
_NUMBERED = {"trans": "vars/0", "l_trans": "vars/0", "r_trans": "vars/1"}  # in ".weights.h5", for bert4keras' layers
_NAMES = {*_LOW_RANK, *_NUMBERED.values(), *(name for names in KINDS.values() for name in names if name)}
_HDF5 = b"\x89HDF\r\n\x1a\n"  # how such a file begins
_SUFFIX = re.compile(r"(:0|/\.ATTRIBUTES/VARIABLE_VALUE)$")  # of TensorFlow's names
_BY_ORDER = re.compile(r"(?:^|/)(?:conditional_random_field|maximum_entropy_markov_model)(?:_\d+)?/(vars/\d+)$")


def load_crf_weights(layer, source, kind, lr_multiplier=None, prefix=""):
    """Puts the weights of another library's CRF into a layer, which then has the same likelihood and the same tags.

    Only the CRF's own scores are read: where the other library keeps the projection to the tags in the same layer (as
    TensorFlow Addons does), that is a `Dense` layer here.

    Args:
        layer: A built `ConditionalRandomField` with as many tags or, for bert4keras' weights of its own, a
            `MaximumEntropyMarkovModel` of the same `hidden_dim`. Its own `lr_multiplier` may be any.
        source: A mapping from names to arrays (a torch `state_dict` is one), or a path: what `save_weights` of Keras 2
            wrote (HDF5, or a checkpoint of TensorFlow), or whatever `kcrf.checkpoints.open_checkpoint` opens.
        kind: Who wrote it: "bert4keras", "tfa" or "pytorch-crf".
        lr_multiplier: For bert4keras, and needed there, the multiplier that its layer had: what it stores is divided by
            it, and the file does not tell. Defaults to None.
        prefix: Only names that begin with this count, where there are several CRFs. Defaults to "".

    Raises:
        ValueError: An array is missing, ambiguous or of another shape; the source has scores of first and last tags
            and the layer has no `use_boundary`, or the reverse; or the layer is a `MaximumEntropyMarkovModel` and the
            kind another than "bert4keras". bert4keras has no scores of first and last tags; a layer with `use_boundary`
            gets zeros, which is the same model.

    >>> from kcrf.backend import ops
    >>> from kcrf.layers import ConditionalRandomField
    >>> layer = ConditionalRandomField(lr_multiplier=10)
    >>> layer.build((None, None, 2))
    >>> load_crf_weights(layer, {"trans": [[0.1, 0.2], [0.3, 0.4]]}, "bert4keras", lr_multiplier=1000)
    >>> round(float(ops.convert_to_numpy(layer.trans)[1, 0]), 3)
    300.0
    """
    if kind not in KINDS:
        raise ValueError(f"`kind` must be one of {sorted(KINDS)}. Received: kind={kind!r}")
    if not layer.built:
        raise ValueError(f"`{layer.name}` must be built before weights can be put into it. Call it or its model once.")
    if (kind == "bert4keras") != (lr_multiplier is not None):
        raise ValueError(
            "`lr_multiplier` must say what bert4keras' layer was made with (1 if with nothing), and is for its weights "
            f"alone. Received: kind={kind!r}, lr_multiplier={lr_multiplier}"
        )
    if isinstance(layer, MaximumEntropyMarkovModel) and kind != "bert4keras":
        raise ValueError(f"`{layer.name}` is a MEMM, and its weights are of kind 'bert4keras'. Received: kind={kind!r}")
    arrays = source if isinstance(source, Mapping) else _open(Path(source))
    low_rank = getattr(layer, "hidden_dim", None) is not None
    names = [_only(arrays, name, prefix) for name in (_LOW_RANK if low_rank else KINDS[kind])]
    if low_rank:
        variables = [layer._trans, layer._r_trans]
    else:
        _check_boundary(layer, names[1:], kind)
        variables = [layer._trans] + ([layer._start, layer._end] if layer.use_boundary else [])
    scores = [None if name is None else _numpy(arrays[name]) * (lr_multiplier or 1) for name in names]
    for name, score, variable in zip(names, scores, variables, strict=False):
        if score is not None and score.shape != tuple(variable.shape):
            raise ValueError(
                f"`{layer.name}` needs {name!r} of shape {tuple(variable.shape)}. Received: shape={score.shape}"
            )
    for score, variable in zip(scores, variables, strict=False):
        score = np.zeros(variable.shape) if score is None else score
        variable.assign((score / float(layer.multiplier)).astype("float32"))


def _only(arrays, name, prefix):
    """The one full name whose last part is `name`, or None where the kind has no such array or the source lacks it."""
    if name is None:
        return None
    wanted = (name, _NUMBERED.get(name))
    found = [x for x in arrays if x.startswith(prefix) and _last_part(x) in wanted]
    if len(found) > 1:
        raise ValueError(f"The source must have one {name!r}; choose by `prefix`. Received: {sorted(found)}")
    if not found and name in {*_LOW_RANK, *(names[0] for names in KINDS.values())}:
        raise ValueError(f"The source must have an array {name!r}. Received: {_few(sorted(arrays))}, prefix={prefix!r}")
    return found[0] if found else None


def _last_part(name):
    """What an array is called in its own layer, or its number among them."""
    number = _BY_ORDER.search(name)
    return number[1] if number else re.split("[/.]", _SUFFIX.sub("", name))[-1].lstrip("_")


def _check_boundary(layer, names, kind):
    wanted = KINDS[kind][1:]
    if layer.use_boundary and kind != "bert4keras" and None in names:
        raise ValueError(
            f"`{layer.name}` has use_boundary=True and needs {wanted[0]!r} and {wanted[1]!r}, which the source lacks. "
            "Make the layer with use_boundary=False if the other model had none."
        )
    if not layer.use_boundary and names != [None, None]:
        raise ValueError(
            f"The source scores first and last tags ({' and '.join(filter(None, names))}). Make `{layer.name}` with "
            "use_boundary=True to take them."
        )


def _open(path):
    """The arrays of a file by name. What bert4keras' scripts call "best_model.weights" may be either of two kinds."""
    if Path(f"{path}.index").is_file():
        return _read_tensorflow(path)
    if path.is_file():
        with open(path, "rb") as file:
            if file.read(len(_HDF5)) == _HDF5:
                return _read_h5(path)
    return open_checkpoint(path)


def _read_h5(path):
    """What may be a CRF's among the arrays of an HDF5 file; what an optimizer left there is not looked at."""
    import h5py

    arrays = {}

    def collect(name, item):
        if isinstance(item, h5py.Dataset) and _last_part(name) in _NAMES and not name.startswith("optimizer"):
            arrays[name] = item[()]

    with h5py.File(path) as file:
        file.visititems(collect)
    return arrays


def _read_tensorflow(prefix):
    """What may be a CRF's among the arrays of an object-based checkpoint of TensorFlow 2."""
    try:
        from tensorflow.train import load_checkpoint
    except ImportError:
        raise ImportError(f"{prefix}: a TensorFlow checkpoint of Python objects needs tensorflow to be read") from None
    reader = load_checkpoint(str(prefix))
    names = (name for name in reader.get_variable_to_shape_map() if _last_part(name) in _NAMES)
    return {name: reader.get_tensor(name) for name in names}


def _numpy(array):
    """A NumPy float64 array of whatever came, also of a torch parameter."""
    if hasattr(array, "detach"):
        array = array.detach().cpu().double()
    return np.asarray(array, dtype="float64")


def _few(names):
    return names if len(names) <= 10 else [*names[:10], f"... {len(names)} in all"]

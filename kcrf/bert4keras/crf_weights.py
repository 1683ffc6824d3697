"""Weights of CRFs and MEMMs of other libraries, loaded into a layer: bert4keras, TensorFlow Addons, pytorch-crf."""

import re
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from kcrf.bert4keras.memm import MaximumEntropyMarkovModel
from kcrf.bert4keras.weights import leaf_name, read_arrays
from kcrf.checkpoints import open_checkpoint

# The names of each library: of the transitions (from row to column), the scores of the first tag and of the last.
LIBRARIES = {
    "bert4keras": ("trans", None, None),
    "tfa": ("chain_kernel", "left_boundary", "right_boundary"),
    "pytorch-crf": ("transitions", "start_transitions", "end_transitions"),
}
_LOW_RANK = ("l_trans", "r_trans")  # of bert4keras' MEMM with a `hidden_dim`
_NUMBERED = {"trans": "vars/0", "l_trans": "vars/0", "r_trans": "vars/1"}  # of bert4keras' layers in ".weights.h5"
_NUMBERED_NAME = re.compile(r"(?:^|/)(?:conditional_random_field|maximum_entropy_markov_model)(?:_\d+)?/(vars/\d+)$")
_NAMES = {*_LOW_RANK, *_NUMBERED.values(), *(name for names in LIBRARIES.values() for name in names if name)}


def load_crf_weights(
    layer: Any,
    source: Mapping[str, Any] | str | PathLike[str],
    kind: str,
    lr_multiplier: float | None = None,
    prefix: str = "",
) -> None:
    """Loads the weights of another library's CRF into a layer, which then has the same likelihood and the same tags.

    Only the scores of the CRF are loaded, not a projection in the same layer, as TensorFlow Addons has it.

    Args:
        layer: A built `ConditionalRandomField`, or `MaximumEntropyMarkovModel` for bert4keras' MEMM, of the same sizes.
        source: A mapping from names to arrays (a torch `state_dict` is one), or the path of a weight file of Keras 2 or
            of whatever `kcrf.checkpoints.open_checkpoint` opens.
        kind: The library: "bert4keras", "tfa" or "pytorch-crf".
        lr_multiplier: Required for "bert4keras", and only for it: the multiplier that its layer had.
        prefix: Only names that begin with this are read, for sources with several CRFs. Defaults to "".

    >>> import keras
    >>> from kcrf.layers import ConditionalRandomField
    >>> layer = ConditionalRandomField(lr_multiplier=10)
    >>> layer.build((None, None, 2))
    >>> load_crf_weights(layer, {"trans": [[0.1, 0.2], [0.3, 0.4]]}, "bert4keras", lr_multiplier=1000)
    >>> round(float(keras.ops.convert_to_numpy(layer.trans)[1, 0]), 3)
    300.0
    """
    _check_arguments(layer, kind, lr_multiplier)
    arrays: Any = source
    if not isinstance(source, Mapping):
        read = read_arrays(Path(source), lambda name: _name_in_layer(name) in _NAMES)
        arrays = open_checkpoint(source) if read is None else read
    is_low_rank = getattr(layer, "hidden_dim", None) is not None
    names = [_find(arrays, name, prefix) for name in (_LOW_RANK if is_low_rank else LIBRARIES[kind])]
    if is_low_rank:
        variables = [layer._trans, layer._r_trans]
    else:
        _check_boundary(layer, names[1:], kind)
        variables = [layer._trans] + ([layer._start, layer._end] if layer.use_boundary else [])
    found: list[Any] = [None if name is None else arrays[name] for name in names]
    found = [x.detach().cpu().double() if hasattr(x, "detach") else x for x in found]  # NumPy takes no torch parameter
    scores = [None if x is None else np.asarray(x, dtype="float64") * (lr_multiplier or 1) for x in found]
    for name, score, variable in zip(names, scores, variables, strict=False):
        if score is not None and score.shape != tuple(variable.shape):
            raise ValueError(f"`{layer.name}` needs {name!r} of shape {tuple(variable.shape)}. Received: {score.shape}")
    for score, variable in zip(scores, variables, strict=False):
        score = np.zeros(variable.shape) if score is None else score
        variable.assign((score / float(layer.multiplier)).astype("float32"))


def _check_arguments(layer: Any, kind: str, lr_multiplier: float | None) -> None:
    if kind not in LIBRARIES:
        raise ValueError(f"`kind` must be one of {sorted(LIBRARIES)}. Received: kind={kind!r}")
    if not layer.built:
        raise ValueError(f"`{layer.name}` must be built before weights can be put into it. Call it or its model once.")
    if (kind == "bert4keras") != (lr_multiplier is not None):
        raise ValueError(
            "`lr_multiplier` must say what bert4keras' layer was made with (1 if with nothing), and is for its weights "
            f"alone. Received: kind={kind!r}, lr_multiplier={lr_multiplier}"
        )
    if isinstance(layer, MaximumEntropyMarkovModel) and kind != "bert4keras":
        raise ValueError(f"`{layer.name}` is a MEMM, and its weights are of kind 'bert4keras'. Received: kind={kind!r}")


def _find(arrays: Mapping[str, Any], name: str | None, prefix: str) -> str | None:
    """The full name of the one array that is called `name`; `None` if there is none and it is not required."""
    if name is None:
        return None
    accepted = (name, _NUMBERED.get(name))
    names = [full for full in arrays if full.startswith(prefix) and _name_in_layer(full) in accepted]
    if len(names) > 1:
        raise ValueError(f"The source must have one {name!r}; choose by `prefix`. Received: {sorted(names)}")
    if not names and name in {*_LOW_RANK, *(library[0] for library in LIBRARIES.values())}:
        found = sorted(arrays) if len(arrays) <= 10 else [*sorted(arrays)[:10], f"... {len(arrays)} in all"]
        raise ValueError(f"The source must have an array {name!r}. Received: {found}, prefix={prefix!r}")
    return names[0] if names else None


def _name_in_layer(name: str) -> str:
    number = _NUMBERED_NAME.search(name)
    return number[1] if number else leaf_name(name)


def _check_boundary(layer: Any, names: list[str | None], kind: str) -> None:
    start, end = LIBRARIES[kind][1:]
    if layer.use_boundary and kind != "bert4keras" and None in names:
        raise ValueError(
            f"`{layer.name}` has use_boundary=True and needs {start!r} and {end!r}, which the source lacks. "
            "Make the layer with use_boundary=False if the other model had none."
        )
    if not layer.use_boundary and names != [None, None]:
        raise ValueError(
            f"The source scores first and last tags ({' and '.join(filter(None, names))}). Make `{layer.name}` with "
            "use_boundary=True to take them."
        )

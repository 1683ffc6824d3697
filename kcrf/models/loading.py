"""Weights of transformer encoders: loaded, left out, drawn anew, saved.

Everything here finds an encoder inside any model that contains it, by the names of its layers: in the model that
`build_transformer_model` returned, in one with a CRF on top, in one that Keras loaded from a file.
"""

import re
from dataclasses import dataclass, field

import numpy as np

from kcrf import checkpoints
from kcrf.backend import ops, tensor_from_numpy
from kcrf.layers.dense import TruncatedNormal
from kcrf.models.encoders import TRANSPOSED, encoder_config, google_names_of, token_embedding, variables_by_path
from kcrf.models.names import MAPPING

__all__ = ["LoadReport", "fresh_value", "load_checkpoint", "reinitialize"]

SHOWN = 8  # names in an error message
WORDS = "bert/embeddings/word_embeddings"
PER_TOKEN = ("embeddings/word_embeddings", "cls/predictions/output_bias")
PER_POSITION = "embeddings/position_embeddings"


@dataclass
class LoadReport:
    """What became of every weight of an encoder and of every array of a checkpoint.

    Attributes:
        source: The checkpoint.
        loaded: Paths of variables that have the checkpoint's values.
        reinitialized: Paths of variables that were left out on purpose and have the initializer's values.
        skipped: Names in the checkpoint that belong to those, and were not read.
        missing: Names that the encoder needs and the checkpoint lacks.
        mismatched: `(name, shape in the model, shape in the checkpoint)`.
        unused: Names in the checkpoint that the encoder has no place for.
    """

    source: str
    loaded: set = field(default_factory=set)
    reinitialized: set = field(default_factory=set)
    skipped: list = field(default_factory=list)
    missing: list = field(default_factory=list)
    mismatched: list = field(default_factory=list)
    unused: list = field(default_factory=list)

    def summary(self):
        """One line with the counts."""
        names = ("loaded", "reinitialized", "missing", "mismatched", "unused")
        return f"{self.source}: " + ", ".join(f"{len(getattr(self, name))} {name}" for name in names)

    def check(self):
        """Raises a ValueError if something that the encoder needs was missing or had another shape."""
        problems = [f"{name} is missing" for name in self.missing]
        problems += [f"{name} has shape {found}, expected {wanted}" for name, wanted, found in self.mismatched]
        if problems:
            raise ValueError(
                f"{self.source}: {_listed(problems)}. Nothing was loaded; ignore_invalid_weights=True leaves such "
                f"weights as they are. {len(self.unused)} arrays there are unused: {_listed(self.unused) or 'none'}"
            )


def load_checkpoint(
    model,
    path,
    prefix="",
    skip_top_layers=0,
    skip_pooler=None,
    skip=(),
    ignore_invalid_weights=False,
    keep_tokens=None,
    compound_tokens=None,
    keep_old=True,
):
    """Loads a checkpoint into the encoder of a model; see `build_transformer_model` for the arguments.

    Names and shapes are settled before anything is read. With `keep_old` everything is read before anything is
    changed; without it the arrays go in one by one, in half the memory, and a file that breaks off spoils the model.
    """
    config, variables = encoder_config(model, prefix), variables_by_path(model)
    names = {ours: theirs for ours, theirs in google_names_of(model, prefix).items() if ours in variables}
    left_out = _left_out(names, config, skip_top_layers, skip_pooler) | _matching(names, skip)
    arrays = checkpoints.google_names(checkpoints.open_checkpoint(path), config["model"])
    source = _Arrays(arrays, keep_tokens, compound_tokens)
    report, found = LoadReport(str(path)), {}
    for ours, theirs in names.items():
        wanted = tuple(variables[ours].shape)
        if ours in left_out:
            report.reinitialized.add(ours)
            report.skipped += [theirs] * (theirs in arrays)
        elif theirs not in arrays:
            report.missing.append(theirs)
        elif (shape := source.shape(theirs, wanted)) != wanted:
            report.mismatched.append((theirs, wanted, shape))
        else:
            found[ours] = theirs
    report.unused = source.unused(names.values())
    if not ignore_invalid_weights:
        report.check()
    values = (source.read(theirs, variables[ours].shape) for ours, theirs in found.items())
    for ours, value in zip(found, list(values) if keep_old else values):
        _assign(variables, ours, tensor_from_numpy(value))
        report.loaded.add(ours)
    _attach(model, prefix, report)
    print(report.summary())
    return report


def reinitialize(model, top_layers=0, pooler=None, prefix=""):
    """Draws the weights of the top layers of an encoder anew, in place.

    Kernels come from TruncatedNormal(0.02) (or the configuration's initializer_range), each with a seed of its own;
    biases become 0, LayerNorm 1 and 0. Source: Zhang et al. 2021, https://arxiv.org/abs/2006.05987, section 5.

    Args:
        model: Any model with one of our encoders in it.
        top_layers: The number of transformer layers, from the top. Defaults to 0.
        pooler: Whether to draw the pooler too. Defaults to `top_layers > 0`, where there is a pooler.
        prefix: The prefix of the encoder's layer names. Defaults to none.

    Returns:
        The paths of the variables that changed, sorted.

    Raises:
        ValueError: More layers than there are, any layer of ALBERT, or nothing to draw.
    """
    config, variables = encoder_config(model, prefix), variables_by_path(model)
    names = {ours: theirs for ours, theirs in google_names_of(model, prefix).items() if ours in variables}
    paths = sorted(_left_out(names, config, top_layers, pooler))
    if not paths:
        raise ValueError(f"Nothing to draw anew. Received: top_layers={top_layers}, pooler={pooler}")
    for path in paths:
        _assign(variables, path, fresh_value(path, variables[path].shape, config["initializer_range"]))
    report = token_embedding(model, prefix).kcrf_load_report
    if report is not None:
        report.loaded -= set(paths)
        report.reinitialized |= set(paths)
    return paths


class _Arrays:
    """The arrays of a checkpoint as a model wants them; nothing is read before `read`."""

    def __init__(self, arrays, keep_tokens=None, compound_tokens=None):
        self.arrays, self.keep = arrays, keep_tokens
        self.compound = [item if isinstance(item, tuple) else (item, None) for item in compound_tokens or []]
        # The first albert_zh mapped tokens before the sum with positions: one table, the product of two, does the same.
        self.factors = f"{MAPPING}/kernel" in arrays and f"{MAPPING}/bias" not in arrays

    def shape(self, name, wanted):
        """The shape that an array will have."""
        shape = tuple(self.arrays.shape(name))
        if name == TRANSPOSED:
            return shape[::-1]
        if name == WORDS and self.factors:
            shape = (shape[0], self.arrays.shape(f"{MAPPING}/kernel")[1])
        if name.endswith(PER_TOKEN):
            kept = shape[0] if self.keep is None else len(self.keep)
            return (kept + len(self.compound), *shape[1:])
        return (wanted[0], *shape[1:]) if name.endswith(PER_POSITION) and shape[0] > wanted[0] else shape

    def read(self, name, wanted):
        array = self.arrays[name]
        if name == TRANSPOSED:
            return array.T
        if name == WORDS and self.factors:
            array = array @ self.arrays[f"{MAPPING}/kernel"]
        if name.endswith(PER_TOKEN):
            return self._select(array)
        return array[: wanted[0]] if name.endswith(PER_POSITION) else array

    def _select(self, array):
        if self.keep is not None and max(self.keep) >= len(array):
            raise ValueError(f"`keep_tokens` must be below {len(array)}, the tokens there. Received: {max(self.keep)}")
        array = array if self.keep is None else array[self.keep]
        added = [np.average(array[list(rows)], axis=0, weights=weights) for rows, weights in self.compound]
        return np.concatenate([array, np.asarray(added, array.dtype)]) if added else array

    def unused(self, names):
        """The names that are not among these, nor a factor of one of them."""
        return sorted(set(self.arrays) - set(names) - ({f"{MAPPING}/kernel"} if self.factors else set()))


def _left_out(names, config, top_layers, pooler):
    """The paths of the variables of the top layers, and of the pooler where it goes with them."""
    depth, prefix = config["num_hidden_layers"], config["prefix"]
    if top_layers and config["model"] == "albert":
        raise ValueError(f"ALBERT's layers are one and the same: none is on top. Received: {top_layers} top layers")
    if not 0 <= top_layers <= depth:
        raise ValueError(f"The encoder has {depth} layers. Received: {top_layers} top layers")
    parts = [f"{prefix}Transformer-{index}-" for index in range(depth - top_layers, depth)]
    if pooler or (pooler is None and top_layers):
        parts.append(f"{prefix}Pooler-Dense/")
    return {path for path in names if path.startswith(tuple(parts))}


def _matching(names, patterns):
    """The paths of the variables that regular expressions find, by path or by name in the checkpoint."""
    found = set()
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        matches = {ours for ours, theirs in names.items() if re.search(pattern, ours) or re.search(pattern, theirs)}
        if not matches:
            raise ValueError(f"`skip` must match something, of: {', '.join(names)}. Received: {pattern!r}")
        found |= matches
    return found


def fresh_value(path, shape, stddev):
    """Fresh values for a variable; every call draws with a new seed."""
    leaf = path.rpartition("/")[2]
    if leaf in ("kernel", "embeddings"):
        return TruncatedNormal(stddev)(shape)
    return np.ones(shape, "float32") if leaf == "gamma" else np.zeros(shape, "float32")


def _assign(variables, path, value):
    """Sets a variable, and the prior of its mixout where it has one."""
    variables[path].assign(value)
    prior = path.removesuffix("kernel") + "prior"
    if prior != path + "prior" and prior in variables:
        variables[prior].assign(ops.copy(value))  # JAX hands the memory of each variable on by itself


def _attach(model, prefix, report):
    """Leaves the report on the model, and on the layer that goes along into models around this one."""
    model.kcrf_load_report = report
    token_embedding(model, prefix).kcrf_load_report = report


def _listed(names):
    names = list(names)
    return "; ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")

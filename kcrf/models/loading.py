"""Loads checkpoints into the encoder of a model, found by its layer names, and re-initializes its top layers."""

import re
from dataclasses import dataclass, field
from functools import partial
from operator import index as as_index
from typing import Any

import numpy as np

from kcrf import checkpoints
from kcrf.backend import ops, tensor_from_numpy
from kcrf.checkpoints.names import layer_owner
from kcrf.files import shortened
from kcrf.layers.dense import TruncatedNormal
from kcrf.models.encoders import checkpoint_names, encoder_record, variables_by_path
from kcrf.models.names import EMBEDDING_MAPPING, OUTPUT_BIAS, POSITIONS, ROW_PER_TOKEN, TRANSPOSED, WORD_EMBEDDINGS

OUTPUT_MATRICES = ("predictions.decoder.weight", "lm_head.decoder.weight", "vocab_projector.weight")
IN_ENCODER = re.compile(
    r"(module\.)?(bert|distilbert|roberta|ernie|albert|electra|nezha|embeddings|embeddings_project|encoder|transformer)[/.]"
)


@dataclass
class LoadReport:
    """The result of loading a checkpoint into an encoder: each variable, and each array of the checkpoint.

    Attributes:
        source: The checkpoint.
        loaded, reinitialized: Paths of the variables with the checkpoint's values, or with fresh ones.
        skipped: Names of the arrays that were not read, because their variables are re-initialized.
        missing: Names that the encoder needs and the checkpoint lacks.
        mismatched: `(name, shape in the model, shape in the checkpoint)` of the arrays whose shape does not fit.
        unused: Names in the checkpoint that no variable of the encoder has.
        needed: Unused arrays of the encoder itself: without them the loaded model computes other hidden states.
    """

    source: str
    loaded: set = field(default_factory=set)
    reinitialized: set = field(default_factory=set)
    skipped: list = field(default_factory=list)
    missing: list = field(default_factory=list)
    mismatched: list = field(default_factory=list)
    unused: list = field(default_factory=list)
    needed: list = field(default_factory=list)

    def summary(self) -> str:
        """One line with the counts, and the names of unused arrays that the hidden states depend on."""
        names = ("loaded", "reinitialized", "missing", "mismatched", "unused")
        counts = ", ".join(f"{len(getattr(self, name))} {name}" for name in names)
        return f"{self.source}: {counts}" + (f" (changes hidden states: {_shortened(self.needed)})" * bool(self.needed))

    def check(self) -> None:
        """Raises a ValueError if an array that the encoder needs is missing, has another shape or has no use."""
        problems = [f"{name} is missing" for name in self.missing]
        problems += [f"{name} has shape {stored}, expected {shape}" for name, shape, stored in self.mismatched]
        problems += [f"{name} changes hidden states, and the configuration has no place for it" for name in self.needed]
        if problems:
            no_pooler = any("/pooler/" in name for name in self.missing)
            advice = "; skip_pooler=True, --skip-pooler, re-initializes the pooler" if no_pooler else ""
            unused = _shortened(self.unused) or "none"
            raise ValueError(
                f"{self.source}: {_shortened(problems)}. Nothing was loaded; ignore_invalid_weights=True leaves such "
                f"weights as they are{advice}. {len(self.unused)} arrays there are unused: {unused}"
            )


def load_checkpoint(
    model: Any,
    path: Any,
    prefix: str = "",
    skip_top_layers: int = 0,
    skip_pooler: Any = None,
    skip: Any = (),
    ignore_invalid_weights: bool = False,
    keep_tokens: Any = None,
    compound_tokens: Any = None,
    keep_old: bool = True,
) -> Any:
    """Loads a checkpoint into the encoder of a model, after a check of all names and shapes. Returns the `LoadReport`.

    With `keep_old` all arrays are read before the first is assigned, so that a damaged file changes nothing.
    """
    record, variables = encoder_record(model, prefix), variables_by_path(model)
    names = checkpoint_names(record, variables)
    skipped = _paths_on_top(names, record.config, skip_top_layers, skip_pooler) | _matching_paths(names, skip)
    stored = checkpoints.open_checkpoint(path)
    arrays = checkpoints.google_names(stored, record.config["model"])
    source = _CheckpointArrays(arrays, keep_tokens, compound_tokens)
    name = path.path if isinstance(path, checkpoints.open.Checkpoint) else path
    report = LoadReport(str(name), unused=source.unused(names.values()))
    report.needed = _needed(report.unused, names.values(), record.config)
    to_load = _sort_out(names, variables, skipped, source, report)
    if not ignore_invalid_weights:
        report.check()
        _check_output_matrix(names, stored, arrays, report.source)
    values = (source.read(name, variables[variable_path].shape) for variable_path, name in to_load.items())
    for variable_path, value in zip(to_load, list(values) if keep_old else values):
        _assign(variables, variable_path, tensor_from_numpy(value))
        report.loaded.add(variable_path)
    if keep_old:  # what is skipped may have the values of an earlier checkpoint
        _draw_anew(variables, sorted(report.reinitialized), record.config)
    record.report = model.kcrf_load_report = report
    print(report.summary())
    return report


def _check_output_matrix(names: Any, stored: Any, arrays: Any, source: Any) -> None:
    """Raises ValueError if the hidden tokens of a checkpoint are predicted by another matrix than the embeddings."""
    name = next((name for name in stored if name.endswith(OUTPUT_MATRICES)), None)
    if name is None or OUTPUT_BIAS not in names.values() or WORD_EMBEDDINGS not in arrays:
        return
    if not np.array_equal(stored[name], arrays[WORD_EMBEDDINGS]):
        raise ValueError(
            f"{source}: with_mlm needs a model that predicts tokens by its embeddings, as BERT does. "
            f"Received: {name}, which differs from them (tie_word_embeddings=false)"
        )


def _needed(unused: Any, names: Any, config: dict[str, Any]) -> Any:
    """The unused arrays that the hidden states depend on, without the arrays of layers that the model lacks."""
    parts = {layer_owner(name) for name in names}
    needed = []
    for name in unused:
        owner, is_adapter = layer_owner(name), re.search(r"(^|[._])lora_", name)  # an adapter that was not merged
        is_absent = owner == "pooler" or (isinstance(owner, int) and owner not in parts)
        is_shared = name.endswith("/token_type_embeddings") and config.get("shared_segment_embeddings")
        if is_adapter or (IN_ENCODER.match(name) and not is_absent and not is_shared):
            needed.append(name)
    return needed


def _sort_out(names: Any, variables: Any, skipped: Any, source: Any, report: Any) -> Any:
    """Adds the arrays that cannot or must not be loaded to the report. Returns the others, a dict from path to name."""
    to_load = {}
    for path, name in names.items():
        expected_shape = tuple(variables[path].shape)
        if path in skipped:
            report.reinitialized.add(path)
            report.skipped += [name] * (name in source.arrays)
        elif name not in source.arrays:
            report.missing.append(name)
        elif (shape := source.shape(name, expected_shape)) != expected_shape:
            report.mismatched.append((name, expected_shape, shape))
        else:
            to_load[path] = name
    return to_load


def reinitialize(model: Any, top_layers: int = 0, pooler: bool | None = None, prefix: str = "") -> Any:
    """Re-initializes the top layers of an encoder in place. Returns the paths of the variables that changed, sorted.

    Kernels are drawn from TruncatedNormal(0.02), or the configuration's `initializer_range`; biases become 0, LayerNorm
    1 and 0. Source: Zhang et al. 2021, https://arxiv.org/abs/2006.05987, section 5.

    Args:
        model: Any model with one of our encoders in it.
        top_layers: Number of transformer layers, from the top. Defaults to 0.
        pooler: Whether to re-initialize the pooler too. Defaults to `top_layers > 0`, where there is a pooler.
        prefix: The prefix of the encoder's layer names. Defaults to "".
    """
    record, variables = encoder_record(model, prefix), variables_by_path(model)
    paths = sorted(_paths_on_top(checkpoint_names(record, variables), record.config, top_layers, pooler))
    if not paths:
        raise ValueError(f"There must be a layer to re-initialize. Received: top_layers={top_layers}, pooler={pooler}")
    _draw_anew(variables, paths, record.config)
    if record.report is not None:
        record.report.loaded -= set(paths)
        record.report.reinitialized |= set(paths)
    return paths


class _CheckpointArrays:
    """The arrays of a checkpoint in the shapes that a model needs; an array is read by `read` and not before.

    A compound token is the mean of a list of tokens, or of a tuple of such a list and of their weights.
    """

    def __init__(self, arrays: Any, keep_tokens: Any = None, compound_tokens: Any = None) -> None:
        self.arrays, self.keep = arrays, keep_tokens
        self.compound = [item if isinstance(item, tuple) else (item, None) for item in compound_tokens or []]
        # The first albert_zh widens word embeddings before positions are added. The product of the two tables is the
        # same as one wide table.
        self.is_factored = f"{EMBEDDING_MAPPING}/kernel" in arrays and f"{EMBEDDING_MAPPING}/bias" not in arrays

    def shape(self, name: str, expected_shape: Any) -> Any:
        """The shape that `read` will return for a variable of shape `wanted`; nothing is read."""
        shape = tuple(self.arrays.shape(name))
        if name == TRANSPOSED:
            return shape[::-1]
        if name == WORD_EMBEDDINGS and self.is_factored:
            shape = (shape[0], self.arrays.shape(f"{EMBEDDING_MAPPING}/kernel")[1])
        if name.endswith(ROW_PER_TOKEN):
            kept = shape[0] if self.keep is None else len(self.keep)
            return (kept + len(self.compound), *shape[1:])
        if name.endswith(POSITIONS) and shape[0] > expected_shape[0]:
            return (expected_shape[0], *shape[1:])
        return shape

    def read(self, name: str, expected_shape: Any) -> Any:
        array = self.arrays[name]
        if np.issubdtype(array.dtype, np.integer):
            raise ValueError(f"{name}: the weights of a model must be floats, not quantized. Received: {array.dtype}")
        if name == TRANSPOSED:
            return array.T
        if name == WORD_EMBEDDINGS and self.is_factored:
            array = array @ self.arrays[f"{EMBEDDING_MAPPING}/kernel"]
        if name.endswith(ROW_PER_TOKEN):
            return self._select_tokens(array)
        return array[: expected_shape[0]] if name.endswith(POSITIONS) else array

    def _select_tokens(self, array: Any) -> Any:
        if self.keep is not None:
            _check_tokens("keep_tokens", self.keep, len(array))
            array = array[self.keep]
        for rows, _ in self.compound:
            _check_tokens("compound_tokens", rows, len(array))
        added = [np.average(array[list(rows)], axis=0, weights=weights) for rows, weights in self.compound]
        return np.concatenate([array, np.asarray(added, array.dtype)]) if added else array

    def unused(self, names: Any) -> list[Any]:
        """The names of the arrays that none of the given names needs."""
        factors = {f"{EMBEDDING_MAPPING}/kernel"} if self.is_factored else set()
        return sorted(set(self.arrays) - set(names) - factors)


def _check_tokens(name: str, tokens: Any, count: int) -> None:
    """Raises ValueError unless there are tokens, all among the first `count`."""
    if not len(tokens) or min(tokens) < 0 or max(tokens) >= count:
        outside = next((token for token in tokens if not 0 <= token < count), "no token")
        raise ValueError(f"`{name}` must be at least 0 and below {count}, the tokens there. Received: {outside}")


def _paths_on_top(names: Any, config: dict[str, Any], top_layers: Any, pooler: Any) -> set[Any]:
    """The paths of the variables of the top layers, and of the pooler where it goes with them."""
    depth, prefix = config["num_hidden_layers"], config["prefix"]
    try:
        count = as_index(top_layers)
    except TypeError:
        count = None
    if count is None or isinstance(top_layers, (bool, np.bool_)):
        raise ValueError(f"The number of top layers must be an int. Received: {top_layers!r} top layers")
    if count and config["model"] == "albert":
        raise ValueError(f"ALBERT's layers are one and the same: none is on top. Received: {count} top layers")
    if not 0 <= count <= depth:
        raise ValueError(f"The encoder has {depth} layers. Received: {count} top layers")
    parts = [f"{prefix}Transformer-{index}-" for index in range(depth - count, depth)]
    if pooler or (pooler is None and count):
        parts.append(f"{prefix}Pooler-Dense/")
    return {path for path in names if path.startswith(tuple(parts))}


def _matching_paths(names: Any, patterns: Any) -> Any:
    """The paths of the variables in whose path or checkpoint name a regular expression is found."""
    paths = set()
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        try:
            matches = {path for path, name in names.items() if re.search(pattern, path) or re.search(pattern, name)}
        except re.error as error:
            raise ValueError(f"`skip` needs regular expressions. Received: {pattern!r} ({error})") from None
        if not matches:
            raise ValueError(f"`skip` must match something, of: {', '.join(names)}. Received: {pattern!r}")
        paths |= matches
    return paths


def fresh_value(path: Any, shape: Any, stddev: Any) -> Any:
    """Fresh values for a variable. Every call draws with a new seed."""
    leaf = path.rpartition("/")[2]
    if leaf in ("kernel", "embeddings"):
        return TruncatedNormal(stddev)(shape)
    return np.ones(shape, "float32") if leaf == "gamma" else np.zeros(shape, "float32")


def _draw_anew(variables: Any, paths: list[str], config: dict[str, Any]) -> None:
    for path in paths:
        _assign(variables, path, fresh_value(path, variables[path].shape, config["initializer_range"]))


def _assign(variables: Any, path: Any, value: Any) -> None:
    """Sets a variable, and where it has mixout the prior that mixout goes back to."""
    variables[path].assign(value)
    prior = path.removesuffix("kernel") + "prior"
    if prior != path + "prior" and prior in variables:
        variables[prior].assign(ops.copy(value))  # JAX may donate the buffer of one of them: each needs its own


_shortened = partial(shortened, most=8, sign="; ")

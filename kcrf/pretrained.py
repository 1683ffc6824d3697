"""Weights of transformer encoders: loaded, left out, drawn anew, saved.

Everything here finds an encoder inside any model that contains it, by the names of its layers: in the model that
`build_transformer_model` returned, in one with a CRF on top, in one that Keras loaded from a file.
"""

import json
import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from kcrf import checkpoints
from kcrf.backend import ops, path_of, tensor_of
from kcrf.configs import huggingface_config
from kcrf.files import write_aside
from kcrf.transformer import TruncatedNormal

__all__ = [
    "LoadReport",
    "load_checkpoint",
    "reinitialize",
    "save_pretrained",
    "save_weights_as_checkpoint",
    "variable_mapping",
]

SHOWN = 8  # names in an error message
MAPPING = "bert/encoder/embedding_hidden_mapping_in"
WORDS = "bert/embeddings/word_embeddings"
TRANSPOSED = "cls/seq_relationship/output_weights"
PER_TOKEN = ("embeddings/word_embeddings", "cls/predictions/output_bias")
PER_POSITION = "embeddings/position_embeddings"

# Our name of a variable: Google's. `{block}` is `bert/encoder/layer_3`, say.
BLOCK = {
    "MultiHeadSelfAttention/query": "{block}/attention/self/query",
    "MultiHeadSelfAttention/key": "{block}/attention/self/key",
    "MultiHeadSelfAttention/value": "{block}/attention/self/value",
    "MultiHeadSelfAttention/output": "{block}/attention/output/dense",
    "MultiHeadSelfAttention-Norm": "{block}/attention/output/LayerNorm",
    "FeedForward/intermediate": "{block}/intermediate/dense",
    "FeedForward/output": "{block}/output/dense",
    "FeedForward-Norm": "{block}/output/LayerNorm",
}
ALBERT_BLOCK = {
    "MultiHeadSelfAttention/query": "{block}/attention_1/self/query",
    "MultiHeadSelfAttention/key": "{block}/attention_1/self/key",
    "MultiHeadSelfAttention/value": "{block}/attention_1/self/value",
    "MultiHeadSelfAttention/output": "{block}/attention_1/output/dense",
    "MultiHeadSelfAttention-Norm": "{block}/LayerNorm",
    "FeedForward/intermediate": "{block}/ffn_1/intermediate/dense",
    "FeedForward/output": "{block}/ffn_1/intermediate/output/dense",
    "FeedForward-Norm": "{block}/LayerNorm_1",
}
AROUND = {
    "Embedding-Norm": "{scope}/embeddings/LayerNorm",
    "Embedding-Mapping": MAPPING,
    "Pooler-Dense": "{scope}/pooler/dense",
    "MLM-Dense": "cls/predictions/transform/dense",
    "MLM-Norm": "cls/predictions/transform/LayerNorm",
    "Discriminator-Dense": "discriminator_predictions/dense",
    "Discriminator-Prediction": "discriminator_predictions/dense_1",
}
SINGLE = {
    "Embedding-Token/embeddings": "{scope}/embeddings/word_embeddings",
    "Embedding-Segment/embeddings": "{scope}/embeddings/token_type_embeddings",
    "Embedding-Position/embeddings": "{scope}/embeddings/position_embeddings",
    "NSP-Proba/kernel": "cls/seq_relationship/output_weights",
    "NSP-Proba/bias": "cls/seq_relationship/output_bias",
    "MLM-Bias/bias": "cls/predictions/output_bias",
}


def variable_mapping(config):
    """The checkpoint name of every variable that an encoder of this configuration may have.

    Args:
        config: A dict with "model", "num_hidden_layers" and "prefix", as `Transformer.config`.

    Returns:
        A dict from variable paths to Google's names.

    >>> mapping = variable_mapping({"model": "bert", "num_hidden_layers": 1, "prefix": ""})
    >>> mapping["Transformer-0-MultiHeadSelfAttention/query/kernel"]
    'bert/encoder/layer_0/attention/self/query/kernel'
    """
    model, scope = config["model"], "electra" if config["model"] == "electra" else "bert"
    around = {**AROUND, "Embedding-Mapping": "electra/embeddings_project"} if model == "electra" else AROUND
    parts = {ours: theirs.format(scope=scope) for ours, theirs in around.items()}
    if model == "albert":
        block = "bert/encoder/transformer/group_0/inner_group_0"
        parts.update({f"Transformer-{ours}": theirs.format(block=block) for ours, theirs in ALBERT_BLOCK.items()})
    else:
        for index in range(config["num_hidden_layers"]):
            block = f"{scope}/encoder/layer_{index}"
            parts.update({f"Transformer-{index}-{ours}": theirs.format(block=block) for ours, theirs in BLOCK.items()})
    names = {ours: theirs.format(scope=scope) for ours, theirs in SINGLE.items()}
    for ours, theirs in parts.items():
        for leaf in ("gamma", "beta") if ours.endswith("Norm") else ("kernel", "bias"):
            names[f"{ours}/{leaf}"] = f"{theirs}/{leaf}"
    return {config["prefix"] + ours: theirs for ours, theirs in names.items()}


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
    config, variables = _encoder(model, prefix), _variables(model)
    names = {ours: theirs for ours, theirs in _google_names(model, prefix).items() if ours in variables}
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
        _assign(variables, ours, tensor_of(value))
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
    config, variables = _encoder(model, prefix), _variables(model)
    names = {ours: theirs for ours, theirs in _google_names(model, prefix).items() if ours in variables}
    paths = sorted(_left_out(names, config, top_layers, pooler))
    if not paths:
        raise ValueError(f"Nothing to draw anew. Received: top_layers={top_layers}, pooler={pooler}")
    for path in paths:
        _assign(variables, path, _initial(path, variables[path].shape, config["initializer_range"]))
    report = _embedding(model, prefix).kcrf_load_report
    if report is not None:
        report.loaded -= set(paths)
        report.reinitialized |= set(paths)
    return paths


def save_pretrained(model, folder, vocab=None, prefix=""):
    """Writes an encoder as Hugging Face `transformers` loads it: `model.safetensors`, `config.json`, `vocab.txt`.

    Args:
        model: Any model with one of our encoders in it.
        folder: Made where it does not exist; files of these names in it are replaced.
        vocab: The vocabulary: a path, a dict from tokens to numbers, or a list of tokens. Defaults to the `vocab.txt`
            that lay beside the configuration when the encoder was built; without one none is written.
        prefix: The prefix of the encoder's layer names. Defaults to none.
    """
    config, folder = _encoder(model, prefix), Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    arrays = _google_arrays(model, prefix)
    if config["model"] == "albert" and f"{MAPPING}/kernel" not in arrays:  # theirs always maps
        width = config["hidden_size"]
        arrays |= {f"{MAPPING}/kernel": np.eye(width, dtype="float32"), f"{MAPPING}/bias": np.zeros(width, "float32")}
    arrays = checkpoints.huggingface_names(arrays, config["model"])
    checkpoints.write_safetensors(folder / "model.safetensors", arrays)
    _write(folder / "config.json", json.dumps(huggingface_config(config), indent=2) + "\n")
    vocab = _embedding(model, prefix).kcrf_vocab_path if vocab is None else vocab
    if isinstance(vocab, Mapping):
        vocab = sorted(vocab, key=vocab.get)
    if isinstance(vocab, (str, os.PathLike)):
        with suppress(shutil.SameFileError):  # saved where it was loaded from
            shutil.copyfile(vocab, folder / "vocab.txt")
    elif vocab is not None:
        _write(folder / "vocab.txt", "".join(f"{token}\n" for token in vocab))


def save_weights_as_checkpoint(model, filename, prefix=""):
    """Writes the weights of an encoder as a checkpoint in Google's TensorFlow format, for which TensorFlow is needed.

    Args:
        model: Any model with one of our encoders in it.
        filename: The prefix of the files, as in "out/bert_model.ckpt".
        prefix: The prefix of the encoder's layer names. Defaults to none.
    """
    checkpoints.write_tf_checkpoint(filename, _google_arrays(model, prefix))


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


def _initial(path, shape, stddev):
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


def _embedding(model, prefix):
    """The layer that knows what encoder it belongs to."""
    for layer in model._flatten_layers():
        if layer.name == f"{prefix}Embedding-Token" and getattr(layer, "transformer_config", None):
            return layer
    raise ValueError(
        f"Needs a model of `build_transformer_model`. Received: none with prefix={prefix!r} in {model.name}"
    )


def _encoder(model, prefix):
    return _embedding(model, prefix).transformer_config


def _google_names(model, prefix):
    """`variable_mapping` of an encoder; bert4keras' encoders bring their own."""
    layer = _embedding(model, prefix)
    return getattr(layer, "kcrf_google_names", None) or variable_mapping(layer.transformer_config)


def _variables(model):
    return {path_of(variable): variable for variable in model.variables}


def _attach(model, prefix, report):
    """Leaves the report on the model, and on the layer that goes along into models around this one."""
    model.kcrf_load_report = report
    _embedding(model, prefix).kcrf_load_report = report


def _google_arrays(model, prefix):
    """The weights of an encoder under Google's names and in Google's shapes."""
    variables, arrays = _variables(model), {}
    for ours, theirs in _google_names(model, prefix).items():
        if ours in variables:
            array = ops.convert_to_numpy(variables[ours])
            arrays[theirs] = array.T if theirs == TRANSPOSED else array
    return arrays


def _write(path, text):
    write_aside(path, lambda aside: aside.write_text(text, encoding="utf-8"))


def _listed(names):
    names = list(names)
    return "; ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")

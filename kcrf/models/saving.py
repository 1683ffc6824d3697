"""Writes the weights of an encoder, for Hugging Face's library or in Google's TensorFlow format."""

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from kcrf import checkpoints
from kcrf.backend import ops, path_of
from kcrf.checkpoints.configs import huggingface_config
from kcrf.files import write_aside
from kcrf.models.encoders import checkpoint_names, encoder_record, variables_by_path
from kcrf.models.names import EMBEDDING_MAPPING, TRANSPOSED
from kcrf.tokenizers.vocabularies import VOCAB, vocab_text


def save_pretrained(model: Any, folder: str | PathLike[str], vocab: Any = None, prefix: str = "") -> None:
    """Writes an encoder as Hugging Face `transformers` loads it: `model.safetensors`, `config.json`, its tokenizer.

    Args:
        model: Any model with one of our encoders in it.
        folder: Made if it does not exist. Files of these names in it are replaced.
        vocab: The vocabulary, for `vocab.txt`: a path, a dict from tokens to ids, or a list of tokens. Defaults to the
            files of the tokenizer next to the configuration that the encoder was built from, if there were any.
        prefix: The prefix of the encoder's layer names. Defaults to "".
    """
    record, folder = encoder_record(model, prefix), Path(folder)
    config = record.config
    folder.mkdir(parents=True, exist_ok=True)
    arrays = _google_arrays(model, prefix)
    kernel, bias = f"{EMBEDDING_MAPPING}/kernel", f"{EMBEDDING_MAPPING}/bias"
    if config["model"] == "albert" and kernel not in arrays:  # Hugging Face's ALBERT always has this layer
        width = config["hidden_size"]
        arrays |= {kernel: np.eye(width, dtype="float32"), bias: np.zeros(width, "float32")}
    arrays = checkpoints.huggingface_names(arrays, config["model"])
    checkpoints.write_safetensors(folder / "model.safetensors", arrays)
    _write_text(folder / "config.json", json.dumps(huggingface_config(config), indent=2) + "\n")
    if vocab is None:
        for path in record.tokenizer:
            _copy(path, folder / path.name)
    elif isinstance(vocab, (str, os.PathLike)):
        _copy(vocab, folder / VOCAB)
    else:
        tokens = vocab_text(vocab) if isinstance(vocab, Mapping) else "".join(f"{token}\n" for token in vocab)
        _write_text(folder / VOCAB, tokens)


def _copy(path: Any, other: Path) -> None:
    with suppress(shutil.SameFileError):  # saved into the folder that it was loaded from
        shutil.copyfile(path, other)


def save_weights_as_checkpoint(model: Any, filename: str | PathLike[str], prefix: str = "") -> None:
    """Writes the weights of an encoder in Google's TensorFlow format; `filename` is the prefix of the files."""
    checkpoints.write_tf_checkpoint(filename, _google_arrays(model, prefix))


def _google_arrays(model: Any, prefix: str) -> Any:
    """The weights of an encoder under Google's names and in Google's shapes."""
    variables, arrays = variables_by_path(model), {}
    for layer in model._flatten_layers():
        if getattr(layer, "lora_enabled", False):  # whose product is added
            kind = "kernel" if hasattr(layer, "kernel") else "embeddings"
            variables[path_of(getattr(layer, f"_{kind}"))] = getattr(layer, kind)
    for path, name in checkpoint_names(encoder_record(model, prefix), variables).items():
        array = ops.convert_to_numpy(variables[path])
        arrays[name] = array.T if name == TRANSPOSED else array
    return arrays


def _write_text(path: Any, text: str) -> None:
    write_aside(path, lambda aside: aside.write_text(text, encoding="utf-8"))

"""Writes the weights of an encoder, for Hugging Face's library or in Google's TensorFlow format."""

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from kcrf import checkpoints
from kcrf.backend import ops
from kcrf.checkpoints.configs import huggingface_config
from kcrf.files import write_aside
from kcrf.models.encoders import TRANSPOSED, encoder_config, google_names_of, token_embedding, variables_by_path
from kcrf.models.names import MAPPING

__all__ = ["save_pretrained", "save_weights_as_checkpoint"]


def save_pretrained(model, folder, vocab=None, prefix=""):
    """Writes an encoder as Hugging Face `transformers` loads it: `model.safetensors`, `config.json`, `vocab.txt`.

    Args:
        model: Any model with one of our encoders in it.
        folder: Made where it does not exist; files of these names in it are replaced.
        vocab: The vocabulary: a path, a dict from tokens to numbers, or a list of tokens. Defaults to the `vocab.txt`
            that lay beside the configuration when the encoder was built; without one none is written.
        prefix: The prefix of the encoder's layer names. Defaults to none.
    """
    config, folder = encoder_config(model, prefix), Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    arrays = _google_arrays(model, prefix)
    if config["model"] == "albert" and f"{MAPPING}/kernel" not in arrays:  # theirs always maps
        width = config["hidden_size"]
        arrays |= {f"{MAPPING}/kernel": np.eye(width, dtype="float32"), f"{MAPPING}/bias": np.zeros(width, "float32")}
    arrays = checkpoints.huggingface_names(arrays, config["model"])
    checkpoints.write_safetensors(folder / "model.safetensors", arrays)
    _write(folder / "config.json", json.dumps(huggingface_config(config), indent=2) + "\n")
    vocab = token_embedding(model, prefix).kcrf_vocab_path if vocab is None else vocab
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


def _google_arrays(model, prefix):
    """The weights of an encoder under Google's names and in Google's shapes."""
    variables, arrays = variables_by_path(model), {}
    for ours, theirs in google_names_of(model, prefix).items():
        if ours in variables:
            array = ops.convert_to_numpy(variables[ours])
            arrays[theirs] = array.T if theirs == TRANSPOSED else array
    return arrays


def _write(path, text):
    write_aside(path, lambda aside: aside.write_text(text, encoding="utf-8"))

"""Writes a tiny BERT with random weights. The other examples use it if no checkpoint folder is given.

    python examples/tiny_checkpoint.py folder

The folder contains the three files of a real checkpoint: configuration, weights and vocabulary.
"""

import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import sys
import tempfile
from pathlib import Path

from kcrf.backend import keras
from kcrf.models import build_transformer_model, save_pretrained


def tiny_checkpoint(texts, model="bert", folder=None, **changes):
    """Writes a checkpoint whose vocabulary contains the characters of the texts.

    Returns:
        The paths of configuration, weights and vocabulary.
    """
    keras.utils.set_random_seed(0)
    folder = Path(folder or tempfile.mkdtemp())
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(set("".join(texts)))]
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    settings = {**sizes, "hidden_dropout_prob": 0.1, "initializer_range": 0.05, "max_position": 128, **changes}
    encoder = build_transformer_model(model=model, vocab_size=len(tokens), with_pool=True, with_mlm=True, **settings)
    save_pretrained(encoder, folder, vocab=tokens)
    return folder / "config.json", folder / "model.safetensors", folder / "vocab.txt"


def checkpoint(texts, **settings):
    """Configuration, weights and vocabulary of the folder on the command line, or else of a tiny checkpoint."""
    if len(sys.argv) < 2:
        return tiny_checkpoint(texts, **settings)
    folder = Path(sys.argv[1])
    config = next(path for path in sorted(folder.glob("*config*.json")))
    return config, folder, folder / "vocab.txt"  # weights of any format in the folder


if __name__ == "__main__":
    for path in tiny_checkpoint(["abc"], folder=sys.argv[1] if len(sys.argv) > 1 else None):
        print(path)

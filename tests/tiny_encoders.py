"""Tiny encoders with random weights, their checkpoints, and what reads their numbers."""

import numpy as np
import pytest
from bert4keras_host import bert4keras_python  # noqa: F401

from kcrf.backend import keras
from kcrf.checkpoints import write_safetensors
from kcrf.models import (
    build_transformer_model,
    variable_mapping,
)

SIZES = {
    "vocab_size": 23,
    "hidden_size": 12,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "hidden_act": "gelu",
    "max_position": 9,
}
TOKENS = np.array([[5, 3, 22, 7, 1, 8], [9, 2, 4, 0, 0, 0], [6, 0, 0, 0, 0, 0]])  # padded, down to one token
SEGMENTS = np.array([[0, 0, 1, 1, 1, 0], [0, 1, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0]])
HEADS = {"bert": "with_mlm", "albert": "with_mlm", "nezha": "with_mlm", "electra": "with_discriminator"}


def numbers(outputs):
    """NumPy arrays of one output or a list of them."""
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    return [keras.ops.convert_to_numpy(output) for output in outputs]


def assert_close(ours, theirs, tolerance=1e-5):
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def random_weights(names_to_shapes, seed=0, scale=0.3):
    """Values large enough that a wrong place, order or formula shows. LayerNorm scales stay near 1."""
    rng = np.random.default_rng(seed)
    return {
        name: (rng.normal(1.0 if name.endswith("gamma") else 0.0, scale, shape)).astype("float32")
        for name, shape in names_to_shapes.items()
    }


def google_shapes(model="bert", prefix="", **config):
    """Names and shapes of a checkpoint with all that a family has, by building one."""
    heads = {HEADS[model]: True, **({} if model == "electra" else {"with_nsp": True})}
    built = build_transformer_model(model=model, **{**SIZES, **config}, **heads)
    mapping = variable_mapping({"model": model, "num_hidden_layers": SIZES["num_hidden_layers"], "prefix": ""})
    shapes = {mapping[v.path]: tuple(v.shape) for v in built.variables if v.path in mapping}
    return {name: s[::-1] if name.endswith("output_weights") else s for name, s in shapes.items()}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A function that writes a checkpoint of random weights under Google's names: its path and its arrays."""

    def make(model="bert", drop=(), **config):
        arrays = random_weights(google_shapes(model, **config))
        arrays = {name: array for name, array in arrays.items() if not any(part in name for part in drop)}
        path = tmp_path_factory.mktemp("checkpoint") / "google.safetensors"
        write_safetensors(path, arrays)
        return path, arrays

    return make


@pytest.fixture(scope="module")
def bert(checkpoint):
    return checkpoint("bert")


def values(model):
    return {variable.path: np.array(keras.ops.convert_to_numpy(variable)) for variable in model.variables}

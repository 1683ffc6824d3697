"""kcrf.backend: loops; on torch, Keras asks for their shapes before it computes."""

import re

import numpy as np
import pytest

from kcrf import crf
from kcrf.backend import backend_name, graphs, scan


@pytest.mark.skipif(backend_name() != "torch", reason="other backends infer shapes themselves")
@pytest.mark.parametrize("reverse", [False, True])
def test_shapes_alone_are_those_of_the_result(reverse):
    import torch

    def step(state, row):
        return state + row[0], (state * row[0], row[1].sum())

    def shapes(device):
        rows = torch.arange(15.0, device=device).reshape(5, 3), torch.ones(5, 2, device=device)
        state, outputs = scan(step, torch.zeros(3, device=device), rows, reverse=reverse)
        return [tuple(x.shape) for x in (state, *outputs)]

    assert shapes("meta") == shapes("cpu") == [(3,), (5, 3), (5,)]


@pytest.mark.skipif(backend_name() != "jax", reason="only JAX compiles the loops of the CRF to the end here")
def test_a_loop_over_twelve_positions_has_three_iterations():
    import jax

    chain = np.zeros((2, 12, 3), "float32"), None, np.zeros((3, 3), "float32")
    for function, loops in ((crf.log_partition, 2), (crf.viterbi, 2)):
        program = jax.jit(lambda emissions, f=function: f(emissions, *chain[1:])).lower(chain[0]).compile().as_text()
        assert re.findall(r'known_trip_count":{"n":"(\d+)"', program).count("3") >= loops


@pytest.mark.skipif(backend_name() != "tensorflow", reason="JAX and torch have an argument for the precision")
def test_tensorflow_multiplies_all_digits_on_a_gpu(monkeypatch):
    import tensorflow as tf

    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["a GPU"])
    product = graphs._loop_ops().matmul(tf.constant([[1e9, 1.0, -1e9]]), tf.ones((3, 1)))
    assert product.dtype == "float32" and product.numpy() == [[1.0]]

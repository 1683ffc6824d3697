"""kcrf.crf.blocks: XLA's programs for a GPU, compiled here for a CPU."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from test_crf import fresh_functions

BACKENDS = ["jax"]


@pytest.fixture
def arrays():
    random = np.random.default_rng(0)
    mask = np.arange(96) < np.array([[96], [50], [1]])
    return random.normal(size=(3, 96, 4)).astype("float32"), mask, random.normal(size=(4, 4)).astype("float32")


def compiled(name, arrays, monkeypatch, platform):
    """The program of a function for a platform, and the number of positions of each of its loops."""
    import jax

    monkeypatch.setattr(jax, "default_backend", lambda: platform)
    program = jax.jit(fresh_functions()[name]).lower(*arrays).compile()
    loops = re.findall(r'known_trip_count":{"n":"(\d+)"', program.as_text())
    return program, [int(length) for length in loops]


def test_on_a_gpu_only_the_recursion_on_logarithms_is_a_loop(arrays, monkeypatch):
    by_loops, loops = compiled("log_partition", arrays, monkeypatch, "cpu")
    by_blocks, left = compiled("log_partition", arrays, monkeypatch, "gpu")
    assert sorted(loops) == [24, 24, 96, 96]  # four positions an iteration; on logarithms, one
    assert left == [96, 96]
    assert_allclose(by_blocks(*arrays), by_loops(*arrays), rtol=1e-5)


def test_on_a_gpu_the_best_path_takes_no_loop(arrays, monkeypatch):
    by_loops, loops = compiled("viterbi", arrays, monkeypatch, "cpu")
    by_blocks, left = compiled("viterbi", arrays, monkeypatch, "gpu")
    assert (loops, left) == ([24, 24], [])
    assert_array_equal(by_blocks(*arrays), by_loops(*arrays))


@pytest.mark.parametrize("time", [48, 97])  # blocks divide 48 positions, not 97
def test_loss_and_gradient_for_cuda_are_plain_operations_outside_the_recursion_on_logarithms(time, monkeypatch):
    import jax

    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    log_partition = fresh_functions()["log_partition"]
    loss = jax.value_and_grad(lambda e, m, t: log_partition(e, m, t).sum(), (0, 2))
    shapes = [jax.ShapeDtypeStruct(*x) for x in (((2, time, 4), "float32"), ((2, time), "bool"), ((4, 4), "float32"))]
    exported = jax.export.export(jax.jit(loss), platforms=["cuda"])(*shapes)
    module = exported.mlir_module()
    assert exported.platforms == ("cuda",) and "custom_call" not in module
    assert module.count("stablehlo.while") == 2


@pytest.mark.parametrize("time", [16, 96])  # a loop; blocks
def test_a_gpu_multiplies_all_digits_of_probabilities(time, monkeypatch):
    import jax

    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    shapes = [
        jax.ShapeDtypeStruct(*x) for x in (((2, time, 16), "float32"), ((2, time), "bool"), ((16, 16), "float32"))
    ]
    exported = jax.export.export(jax.jit(fresh_functions()["log_partition"]), platforms=["cuda"])(*shapes)
    products = [line for line in exported.mlir_module().splitlines() if "stablehlo.dot_general" in line]
    assert products and all("precision = [HIGHEST, HIGHEST]" in line for line in products)


def test_an_export_of_any_size_is_one_loop_on_a_gpu_too(arrays, monkeypatch):
    import jax

    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    shapes = jax.export.symbolic_args_specs(arrays, ("b,t,4", "b,t", "4,4"))
    exported = jax.export.export(jax.jit(fresh_functions()["viterbi"]), platforms=["cpu"])(*shapes)
    assert exported.mlir_module().count("stablehlo.while") == 2

"""kcrf.crf.torch_kernels and triton_kernels, in Triton's interpreter on a CPU, against the enumeration of all paths."""

import json
import os
import subprocess
import sys

import numpy as np
import oracles
import pytest
from chain_cases import Case, check_against_oracle, check_sentences_without_best_path, close, numpy
from conftest import few
from golden import CASES, NAMES
from gradients import value_and_gradients
from numpy.testing import assert_allclose, assert_array_equal

from kcrf import crf
from kcrf.backend import ops
from kcrf.crf import Chain
from kcrf.crf.chain import kernels_for
from kcrf.tags import bmes

BACKENDS = ["torch"]
pytest.importorskip("triton")


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")


@pytest.fixture
def in_tiles(monkeypatch):
    """The kernels load the table of transitions in parts, as they do for more than 128 tags."""
    from kcrf.crf import torch_kernels

    blocks = torch_kernels._blocks
    monkeypatch.setattr(torch_kernels, "_blocks", lambda size: {**blocks(size), "TILE": 2})


def test_the_kernels_are_used():
    assert kernels_for(ops.zeros((1, 2, 256))).__name__ == "kcrf.crf.torch_kernels"
    assert kernels_for(ops.zeros((1, 2, 257))) is None


def test_loops_compute_where_triton_finds_no_c_compiler(monkeypatch):
    from kcrf.crf import torch_kernels, triton_kernels

    class Kernel:
        def __getitem__(self, grid):
            raise RuntimeError("Failed to find C compiler.\nPlease specify via CC")

    case = Case(9, 4, 3, "holes")
    monkeypatch.setattr(torch_kernels, "_STARTS", {})
    monkeypatch.setattr(triton_kernels, "fill", Kernel())
    with pytest.warns(UserWarning, match="a C compiler and .* Received: RuntimeError: Failed to find C compiler.$"):
        assert kernels_for(ops.zeros((1, 2, 3))) is None
    close(numpy(crf.log_likelihood(case.emissions, case.tags, *case.rest)), case.oracle_likelihood())  # without another


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_golden_vectors(case):
    scores = case.emissions, case.transitions, case.start, case.end
    emissions, *rest = (None if x is None else x.astype("float32") for x in scores)
    chain = Chain(emissions, case.mask, *rest)
    marginals, steps = map(numpy, crf.expected_counts(chain))
    close(numpy(crf.log_partition(chain)), case.log_z)
    assert_allclose(marginals, case.marginals, atol=2e-5)
    assert_allclose(steps, case.steps, atol=2e-5)
    assert_array_equal(numpy(crf.viterbi(chain)), [paths[0] for paths in case.paths])


@pytest.mark.parametrize(("scale", "forbidden"), few((1e4, 2), (1e-3, 0), (30.0, 2), (1e4, 0), rest="slow"))
def test_scores_of_any_size(scale, forbidden):
    check_against_oracle(Case(7, 5, 3, "holes", scale, forbidden=forbidden), scale)


@pytest.mark.usefixtures("in_tiles")
@pytest.mark.parametrize("case", few(Case(9, 4, 3, "left", 1e4, forbidden=2), Case(9, 4, 5, "holes"), rest="slow"))
def test_tables_in_tiles(case):
    check_against_oracle(case, np.abs(case.emissions).max())


def test_a_path_that_sinks_below_a_float_at_both_ends_is_not_lost():
    emissions = np.array([[[0, 60]] * 2 + [[80, 0]] * 5 + [[0, 60]] * 2], "float32")
    transitions = np.array([[0, crf.FORBIDDEN], [crf.FORBIDDEN, 0]], "float32")
    close(numpy(crf.log_partition(emissions, None, transitions)), [400.0])
    assert_allclose(numpy(crf.marginals(emissions, None, transitions))[0], [[1, 0]] * 9, atol=1e-6)


@pytest.mark.parametrize("tiles", few(True, False, rest="slow"))
def test_the_gradient_of_unknown_and_of_known_labels(tiles, request):
    if tiles:
        request.getfixturevalue("in_tiles")
    case = Case(11, 4, 3, "holes")
    case.tags[0, ::2], case.tags[1] = -1, -100  # the third sentence is known
    weights = np.array([1.0, 2.0, -0.5])

    def loss(emissions, transitions, start, end):
        likelihood = crf.log_likelihood(emissions, case.tags, case.mask, transitions, start, end)
        return ops.sum(ops.convert_to_tensor(weights.astype("float32")) * likelihood)

    arrays = [case.emissions, case.transitions, case.start, case.end]
    value, found = value_and_gradients(loss, *arrays)
    wide = [x.astype("float64") for x in arrays]

    def exact(arrays):
        sentences = zip(weights, arrays[0], case.tags, case.mask, strict=True)
        return sum(w * oracles.log_likelihood(e, t, m, *arrays[1:]) for w, e, t, m in sentences)

    assert_allclose(value, exact(wide), rtol=1e-5)
    assert not found[0][1].any()  # nothing is known of the second sentence
    for which, gradient in enumerate(found):
        for index in np.ndindex(gradient.shape):
            moved = [[x.copy() for x in wide] for _ in range(2)]
            moved[0][which][index] += 1e-5
            moved[1][which][index] -= 1e-5
            assert_allclose(gradient[index], (exact(moved[0]) - exact(moved[1])) / 2e-5, atol=2e-5)


def test_counts_of_a_long_sentence_equal_the_reference():
    random = np.random.default_rng(3)
    emissions, transitions, start, end = (random.normal(size=s) * 5 for s in ((30, 4), (4, 4), 4, 4))
    arrays = emissions[None], None, transitions, start, end
    chain = Chain(*(x if x is None else x.astype("float32") for x in arrays))
    truth = crf.functions.reference(emissions, transitions, start, end)
    marginals, steps = map(numpy, crf.expected_counts(chain))
    close(numpy(crf.log_partition(chain)), [truth["log_partition"]], 100)
    assert_allclose(marginals[0], truth["marginals"], atol=1e-4)
    assert_allclose(marginals.sum(axis=-1), 1.0, atol=1e-6)
    assert_allclose(steps[0], truth["steps"], atol=1e-3)
    assert numpy(crf.viterbi(chain))[0].tolist() == truth["viterbi"]


def test_labels_are_counted_in_parts_across_masked_positions_in_arrays_of_any_content(monkeypatch):
    import torch
    from torch.utils import deterministic

    from kcrf.crf import torch_kernels

    case = Case(19, 9, 3, "none")
    case.mask[0, 1:6] = case.mask[1, 0] = case.mask[1, 3:5] = case.mask[2] = (
        False  # a part without a position, and no position
    )

    def likelihoods(emissions, transitions, start, end):
        return crf.log_likelihood(emissions, case.tags, case.mask, transitions, start, end)

    arrays = [case.emissions, case.transitions, case.start, case.end]
    monkeypatch.setenv("TRITON_INTERPRET", "0")
    expected = value_and_gradients(lambda *arrays: ops.sum(likelihoods(*arrays)), *arrays)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setitem(torch_kernels._OPTIONS, "CHUNK", 2)
    monkeypatch.setattr(deterministic, "fill_uninitialized_memory", True)  # with NaN
    torch.use_deterministic_algorithms(True)
    try:
        close(numpy(likelihoods(*arrays)), case.oracle_likelihood())
        found = value_and_gradients(lambda *arrays: ops.sum(likelihoods(*arrays)), *arrays)
        path = numpy(crf.viterbi(case.emissions, *case.rest))
    finally:
        torch.use_deterministic_algorithms(False)
    assert_allclose(found[0], expected[0], rtol=1e-5)
    for gradient, wanted in zip(found[1], expected[1], strict=True):
        assert_allclose(gradient, wanted, atol=2e-5)
    assert ((path >= 0) == case.mask).all()


@pytest.mark.filterwarnings("ignore:All-NaN", "ignore:invalid value")
@pytest.mark.parametrize("tiles", [False, True])
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_sentence_without_a_best_path_has_no_tags(number, tiles, request):
    if tiles:
        request.getfixturevalue("in_tiles")
    check_sentences_without_best_path(number)


@pytest.mark.filterwarnings("ignore:All-NaN")
def test_ties_junk_at_masked_positions_and_numbers_that_are_no_tags():
    zeros = np.zeros((3, 3), "float32")
    assert not numpy(crf.viterbi(np.zeros((1, 4, 3)), None, zeros)).any()
    case = Case(13, 3, 3, "none")
    case.mask[:, 1] = False
    whole = numpy(crf.log_likelihood(case.emissions, case.tags, *case.rest))
    emissions = np.where(case.mask[:, :, None], case.emissions, np.float32("nan"))
    tags = np.where(case.mask, case.tags, 99.5)
    assert_array_equal(numpy(crf.log_likelihood(emissions, tags, *case.rest)), whole)
    tags[:2, 2] = 3, 0.5
    found = numpy(crf.log_likelihood(case.emissions, tags.astype("float32"), *case.rest))
    assert np.isnan(found).tolist() == [True, True, False] and found[2] == whole[2]
    emissions[2, 0, 1] = np.nan  # at a real position: training that diverged can be seen
    assert np.isnan(numpy(crf.log_partition(emissions, *case.rest))).tolist() == [False, False, True]


@pytest.mark.parametrize("dtype", few("bfloat16", "float16", rest="slow"))
def test_low_precision_scores_are_summed_in_float32(dtype):
    import torch

    case = Case(5, 4, 3, "right")
    low = torch.tensor(case.emissions).to(getattr(torch, dtype)).requires_grad_()
    case.emissions = low.float().detach().numpy()
    with torch.autocast("cpu", torch.bfloat16):
        likelihood = crf.log_likelihood(low, case.tags, *case.rest)
    likelihood.sum().backward()
    close(numpy(likelihood.detach()), case.oracle_likelihood())
    assert low.grad.dtype == low.dtype


@pytest.mark.filterwarnings("ignore:.*should not be instantiated")  # an old warning of torch's compiler
def test_the_operators_are_known_to_torch_compile_and_export():
    import torch

    import kcrf.crf.torch_kernels  # noqa: F401

    case = Case(17, 3, 3, "right", batch=2)
    emissions, transitions = torch.tensor(case.emissions), torch.tensor(case.transitions)
    mask, tags = torch.tensor(case.mask), torch.tensor(case.tags)
    chain = emissions, mask, transitions, None, torch.zeros(3)
    strided = [x if x is None or x.ndim == 1 else x.mT.contiguous().mT for x in (*chain, tags)]
    for operator, arguments in (
        (torch.ops.kcrf.chain_counts.default, (*chain, tags)),
        (torch.ops.kcrf.viterbi.default, chain),
    ):
        for these in (arguments, strided[: len(arguments)]):  # as operators before may lay them out
            torch.library.opcheck(operator, these, test_utils=("test_schema", "test_faketensor"))
        outputs = [operator(*these) for these in (arguments, strided[: len(arguments)])]
        for found, expected in zip(*(x if isinstance(x, tuple) else (x,) for x in outputs), strict=True):
            assert_array_equal(numpy(found), numpy(expected))

    def both(emissions, tags):
        return crf.log_likelihood(emissions, tags, mask, transitions), crf.viterbi(emissions, mask, transitions)

    compiled = torch.compile(both, backend="aot_eager", fullgraph=True)
    for found, expected in zip(compiled(emissions, tags), both(emissions, tags), strict=True):
        assert_array_equal(numpy(found.detach()), numpy(expected.detach()))

    class Decoder(torch.nn.Module):
        def forward(self, emissions, mask):
            return crf.viterbi(emissions, mask, transitions)

    exported = torch.export.export(Decoder(), (emissions.detach(), mask))
    assert "kcrf.viterbi" in exported.graph_module.code


@pytest.mark.parametrize("constraints", [None, bmes()], ids=["free", "bmes"])
def test_a_step_dispatches_few_more_operations_than_one_with_softmax(constraints):
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    from kcrf.backend import keras
    from kcrf.layers import ConditionalRandomField

    class Counter(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            if function.name().partition("::")[2].partition(".")[0] not in views.split():
                counted.append(str(function))
            return function(*args, **(kwargs or {}))

    views = "detach view _unsafe_view unsqueeze slice expand permute t lift_fresh new_empty_strided _local_scalar_dense"
    tags, mask = torch.zeros(2, 3), torch.ones(2, 3, dtype=torch.bool)
    layer, emissions = ConditionalRandomField(100, constraints=constraints), torch.zeros(2, 3, 4, requires_grad=True)
    softmax, found = keras.losses.SparseCategoricalCrossentropy(from_logits=True), {}

    def crf_loss():
        return layer.sparse_loss(tags, layer(emissions, mask=mask), None)

    crf_loss()  # copies constants, and looks at the labels of the first batch
    for name, loss in {"softmax": lambda: softmax(tags, emissions, mask.float()), "crf": crf_loss}.items():
        counted: list[str] = []
        with Counter():
            loss().backward()
        found[name] = counted
    assert len(found["crf"]) <= len(found["softmax"]) + (13 if constraints is None else 15)
    assert sum("kcrf" in name for name in found["crf"]) == 1


COMPILE = """
import json
import re
import runpy
import sys
import warnings
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

floats = dict.fromkeys(("emissions", "transitions", "end", "value", "counts", "steps", "memory"), "*fp32")
types = {**floats, "mask": "*u8", "labels": "*i64", "path": "*i32", "pointers": "*u8", "time": "i32", "size": "i32"}
file, architecture, options = sys.argv[1], int(sys.argv[2]), {**json.loads(sys.argv[3]), "LABELED": True, "start": None}
warnings.simplefilter("error")
kernels = runpy.run_path(file)
for kernel in (kernels["chain_counts"], kernels["best_path"]):
    constants = {(i,): options[name] for i, name in enumerate(kernel.arg_names) if name in options}
    source = ASTSource(kernel, {name: types.get(name, "constexpr") for name in kernel.arg_names}, constants)
    chosen = {name: value for name, value in options.items() if name in ("num_warps", "enable_fp_fusion")}
    code = triton.compile(source, GPUTarget("cuda", architecture, 32), chosen).asm
    assert len(code["cubin"]) > 1000 and "acq_rel" not in code["ptx"]  # which waits for the memory of the whole GPU
    if options["TILE"] == options["BLOCK"]:  # the threads of a warp have columns, which they sum without each other
        rows = dict(re.findall(r"(#\\w+) = #ttg.blocked<{.*threadsPerWarp = .(\\d+),", code["ttgir"]))
        sums = re.findall(r": .tensor<\\d+x\\d+xf32, (#\\w+)>.*-> tensor<.*dim = 0", code["ttgir"])
        assert (sums or kernel is kernels["best_path"]) and all(int(rows[layout]) <= 2 for layout in sums), (rows, sums)
"""


@pytest.mark.parametrize(("architecture", "size"), few((90, 9), (80, 31), (90, 200), rest="slow"))
def test_the_kernels_compile_for_cuda_without_a_gpu(architecture, size, tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= {"TRITON_CACHE_DIR": str(tmp_path)}
    from kcrf.crf import torch_kernels, triton_kernels

    options = json.dumps(torch_kernels._blocks(size))
    command = [sys.executable, "-c", COMPILE, triton_kernels.__file__, str(architecture), options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]

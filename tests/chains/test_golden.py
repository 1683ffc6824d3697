"""Every kernel computes the golden vectors: `kcrf.chains`, `kcrf.crf`, and the loops of exported ONNX files."""

import numpy as np
import oracles
import pytest
from golden import CASES, NAMES
from numpy.testing import assert_allclose, assert_array_equal

from kcrf import crf
from kcrf.backend import ops
from kcrf.chains import Packing, Posterior, best_paths, best_sequences, expected_counts
from kcrf.tags import classes

BACKENDS = ["torch", "tensorflow", "jax", "tf_keras"]
K = 3


every_case = pytest.mark.parametrize("case", CASES, ids=NAMES)
in_float32 = {"rtol": 2e-6, "atol": 2e-5}


def flat_emissions(case):
    """The emissions of all real positions with the scores of starts and ends, `(positions, tags)`, and the packing."""
    lengths = case.mask.sum(axis=1)
    packing = Packing.of_lengths(lengths[lengths > 0])
    emissions = case.emissions[case.mask]
    if case.start is not None:
        emissions[packing.first] += case.start
        emissions[packing.last] += case.end
    return emissions, packing


@every_case
def test_arrays(case):
    emissions, packing = flat_emissions(case)
    counts = expected_counts(emissions, case.transitions, packing)
    assert_allclose(counts.log_z, case.log_z[case.mask.any(axis=1)], rtol=1e-9)
    assert_allclose(counts.marginals, case.marginals[case.mask], atol=1e-8)
    assert_allclose(counts.steps, case.steps.sum(axis=0), atol=1e-8)
    tags = best_paths(emissions, case.transitions, packing)
    best = np.array([paths[0] for paths in case.paths])
    assert_array_equal(tags, best[case.mask])


@every_case
def test_the_k_best_and_the_entropy_from_posteriors(case):
    emissions, packing = flat_emissions(case)
    counts = expected_counts(emissions, case.transitions, packing, with_onward=True)
    marginals, onward = np.zeros((2, *case.marginals.shape))
    marginals[case.mask], onward[case.mask] = counts.marginals, counts.onward
    posterior = Posterior(marginals, onward, case.transitions, case.mask)
    assert_allclose(posterior.entropies(), case.entropy, atol=1e-6)
    tags, values = best_sequences(posterior, K)
    for row in np.flatnonzero(case.mask.any(axis=1)):
        paths, scores, log_z = case.paths[row], case.scores[row], case.log_z[row]
        likely = [path for path, score in zip(paths, scores, strict=True) if score - log_z > -500]
        assert_array_equal(tags[row, : len(likely)], likely)
        assert_allclose(values[row, : len(likely)], np.array(scores)[: len(likely)] - log_z, atol=1e-6)


@every_case
def test_tensors(case):
    arrays = [case.emissions, case.mask, case.transitions, case.start, case.end]
    chain = [None if x is None else ops.convert_to_tensor(x, x.dtype if x.dtype == bool else "float32") for x in arrays]
    log_z, entropy = (ops.convert_to_numpy(function(*chain)) for function in (crf.log_partition, crf.entropy))
    marginals, steps = map(ops.convert_to_numpy, crf.expected_counts(*chain))
    assert_allclose(log_z, case.log_z, **in_float32)
    assert_allclose(entropy, case.entropy, **in_float32)
    assert_allclose(marginals, case.marginals, **in_float32)
    assert_allclose(steps, case.steps, **in_float32)
    tags, scores = map(ops.convert_to_numpy, crf.top_k_paths(chain[0], K, *chain[1:]))
    assert_array_equal(ops.convert_to_numpy(crf.viterbi(*chain)), [paths[0] for paths in case.paths])
    for row, (paths, expected) in enumerate(zip(case.paths, case.scores, strict=True)):
        assert_array_equal(tags[row, : len(paths)], paths)
        assert_allclose(scores[row, : len(paths)], expected, **in_float32)


def exported(case):
    """The outputs of an ONNX file that computes nothing but the CRF of a case."""
    onnx, onnxruntime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    from kcrf.export.chain_graph import Graph, append_chain

    graph, size = Graph("crf"), case.emissions.shape[2]
    scores = {"transitions": case.transitions, "start": case.start, "end": case.end}
    append_chain(graph, "emissions", "mask", scores, scores, classes([str(tag) for tag in range(size)]))
    feeds = {
        "emissions": case.emissions.astype("float32"),
        "mask": case.mask,
        "allowed": np.zeros((1, 1, 1), "float32"),
        "with_confidences": np.array(True),
    }
    kinds = {np.dtype("float32"): onnx.TensorProto.FLOAT, np.dtype(bool): onnx.TensorProto.BOOL}
    inputs = [onnx.helper.make_tensor_value_info(name, kinds[x.dtype], x.shape) for name, x in feeds.items()]
    outputs = {"tags": onnx.TensorProto.INT32, "marginals": onnx.TensorProto.FLOAT, "onward": onnx.TensorProto.FLOAT}
    results = [onnx.helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()]
    content = onnx.helper.make_graph(graph.nodes, "crf", inputs, results, graph.constants)
    model = onnx.helper.make_model(content, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=10)
    return onnxruntime.InferenceSession(model.SerializeToString()).run(list(outputs), feeds)


def test_sentences_of_unknown_tags_and_of_none():
    """The loss counts the paths that agree with the known tags."""
    random = np.random.default_rng(0)
    emissions, transitions = (
        random.normal(size=(4, 5, 3)).astype("float32"),
        random.normal(size=(3, 3)).astype("float32"),
    )
    tags = np.array([[0, -1, 2, 1, -1], [-1] * 5, [2, 2, 0, 1, 1], [-100, 1, -100, 0, 2]])
    mask = np.arange(5) < np.array([[5], [5], [3], [4]])
    found = ops.convert_to_numpy(crf.log_likelihood(emissions, tags, mask, transitions))
    expected = [oracles.log_likelihood(*row, transitions) for row in zip(emissions, np.maximum(tags, -1), mask)]
    assert_allclose(found, expected, **in_float32)
    assert found[1] == 0


@every_case
def test_onnx(case):
    tags, marginals, onward = exported(case)
    assert_array_equal(tags, [paths[0] for paths in case.paths])
    assert_allclose(marginals, case.marginals, **in_float32)
    posterior = Posterior(marginals.astype("float64"), onward.astype("float64"), case.transitions, case.mask)
    assert_allclose(posterior.entropies(), case.entropy, rtol=1e-4, atol=1e-4)

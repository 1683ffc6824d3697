"""kcrf.crf.Chain: every function takes one in place of the arrays, divided by a temperature and constrained."""

from dataclasses import FrozenInstanceError

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kcrf import crf
from kcrf.backend import backend_name, ops
from kcrf.crf import Chain
from kcrf.tags import bio, bmes

BACKENDS = ["torch", "tensorflow", "jax"]
SIZE = 3
random = np.random.default_rng(0)
EMISSIONS = random.normal(size=(2, 4, SIZE)).astype("float32")
MASK = np.array([[1, 1, 0, 1], [1, 1, 1, 1]], bool)
TRANSITIONS, START, END = (random.normal(size=shape).astype("float32") for shape in ((SIZE, SIZE), SIZE, SIZE))
TAGS = np.array([[0, 1, 0, 2], [1, 2, 0, 0]])
ARRAYS = (MASK, TRANSITIONS, START, END)
CHAIN = Chain(EMISSIONS, *ARRAYS)


@pytest.mark.parametrize(
    ("name", "others"),
    [
        *((name, ()) for name in ("log_partition", "marginals", "expected_counts", "entropy", "viterbi")),
        ("log_sums_onward", ()),
        *((name, (TAGS,)) for name in ("path_score", "log_likelihood")),
        ("top_k_paths", (2,)),
        ("distillation_loss", (np.full(EMISSIONS.shape, 1 / 3, "float32"), np.ones((2, SIZE, SIZE), "float32"))),
    ],
)
def test_a_chain_stands_for_its_arrays(name, others):
    function = getattr(crf.functions, name)
    results = function(CHAIN, *others), function(EMISSIONS, *others, *ARRAYS)
    for one, other in zip(*(x if isinstance(x, tuple) else (x,) for x in results), strict=True):
        assert_array_equal(ops.convert_to_numpy(one), ops.convert_to_numpy(other))


def scaled(array, temperature):
    return array.astype("float64") / temperature


@pytest.mark.parametrize("temperature", [0.5, 1, 3.0])
def test_a_divided_and_constrained_chain_has_the_enumerated_likelihoods(temperature):
    scheme = bio(["X"])
    chain = CHAIN.divided(temperature).constrained(scheme)
    found = ops.convert_to_numpy(crf.log_likelihood(chain, TAGS))
    for index, (emissions, mask, tags) in enumerate(zip(EMISSIONS, MASK, TAGS, strict=True)):
        scores = (scaled(x, temperature) for x in (TRANSITIONS, START, END))
        every = oracles.paths(oracles.cut(scaled(emissions, temperature), mask), *scores)
        legal = {path: value for path, value in every if scheme.violations(list(path)) == []}
        gold = tuple(tags[mask].tolist())
        if gold in legal:
            assert_allclose(found[index], legal[gold] - oracles.log_sum(list(legal.values())), rtol=1e-4)
        else:
            assert found[index] < crf.FORBIDDEN / 2
    paths = ops.convert_to_numpy(crf.viterbi(chain))
    assert all(scheme.violations(path[mask].tolist()) == [] for path, mask in zip(paths, MASK, strict=True))


@pytest.mark.parametrize("temperature", [0, -1.0, float("nan"), float("inf"), np.float32(0), 1e-300, 9e-5])
def test_scores_are_divided_by_a_number_above_0(temperature):
    """-1 would turn the best path into the worst, 0 and 1e-300 all probabilities into NaN; 1e-12 forbade low scores."""
    least = "a finite number of at least 0.0001"
    with pytest.raises(ValueError, match=f"`temperature` must be {least}. Received: {temperature}"):
        CHAIN.divided(temperature)


def test_at_the_lowest_temperature_the_best_path_has_all_the_probability():
    emissions = np.random.default_rng(0).normal(-5, 5, (2, 500, SIZE)).astype("float32")
    chain = Chain(emissions, np.ones((2, 500), bool), TRANSITIONS)
    marginals = ops.convert_to_numpy(crf.marginals(chain.divided(1e-4)))
    assert_array_equal(marginals.argmax(axis=-1), ops.convert_to_numpy(crf.viterbi(chain)))
    assert_allclose(marginals.max(axis=-1), 1, atol=1e-3)


def test_what_is_forbidden_stays_forbidden_at_any_temperature():
    hot = CHAIN.constrained(bio(["X"])).divided(1e6)
    illegal = ops.convert_to_numpy(crf.log_likelihood(hot, np.array([[2, 0, 0, 0], [0, 2, 0, 0]])))
    assert (np.exp(illegal) == 0).all()


def test_a_chain_does_not_change():
    before = EMISSIONS.copy()
    assert CHAIN.divided(2.0) is not CHAIN and CHAIN.divided(1) is CHAIN and CHAIN.constrained(None) is CHAIN
    assert_array_equal(CHAIN.emissions, before)
    with pytest.raises(FrozenInstanceError):
        CHAIN.start = None


def test_a_missing_argument_is_named():
    with pytest.raises(TypeError, match="transitions"):
        crf.viterbi(EMISSIONS, MASK)
    with pytest.raises(TypeError, match="tags"):
        crf.log_likelihood(CHAIN)


@pytest.mark.skipif(backend_name() != "tensorflow", reason="only TensorFlow has graphs of unknown length")
def test_a_graph_of_unknown_sizes_takes_batches_without_sentences_or_positions():
    import tensorflow as tf

    @tf.function(input_signature=[tf.TensorSpec((None, None, SIZE)), tf.TensorSpec((None, None), "int32")])
    def values(emissions, tags):
        chain = Chain(emissions, None, TRANSITIONS, START)
        return crf.log_likelihood(chain, tags), crf.viterbi(chain), crf.marginals(chain)

    for batch, time in ((0, 3), (2, 0), (0, 0), (2, 4)):
        emissions, tags = EMISSIONS[:batch, :time], TAGS[:batch, :time].astype("int32")
        likelihoods, paths, marginals = values(emissions, tags)
        assert paths.shape == (batch, time) and marginals.shape == (batch, time, SIZE)
        expected = [oracles.log_likelihood(e, t, np.ones(time), TRANSITIONS, START, np.zeros(SIZE)) for e, t in
                    zip(emissions, tags, strict=True)] if time else [0.0] * batch  # fmt: skip
        assert_allclose(likelihoods.numpy(), expected, rtol=1e-4)


@pytest.mark.once
def test_constraints_of_another_number_of_tags_are_refused():
    with pytest.raises(ValueError, match="as many tags as there are scores, 3. Received: bmes with 4 tags"):
        Chain(np.zeros((1, 2, 3)), None, np.zeros((3, 3))).constrained(bmes())

"""Tests of kcrf.chains.

The recursions in NumPy beside the enumeration of all paths, for sequences of different lengths at once.
"""

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from kcrf.chains import FORBIDDEN, Packing, best_paths, expected_counts
from kcrf.crf.functions import reference
from kcrf.tags import bio, bioes, bmes, classes

BACKENDS = ["torch"]


@st.composite
def problems(draw):
    """Lengths, emissions `(positions, tags)` and transitions, some of them forbidden but never all."""
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    tags = draw(st.integers(1, 3))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    emissions = random.normal(size=(sum(lengths), tags)) * draw(st.sampled_from([0.1, 3.0, 60.0]))
    transitions = random.normal(size=(tags, tags)) * draw(st.sampled_from([0.1, 3.0, 60.0]))
    if tags > 1 and draw(st.booleans()):
        transitions[0, 1] = -1e9
    return lengths, emissions, transitions


def each(lengths, rows):
    return np.split(rows, np.cumsum(lengths)[:-1])


@given(problems())
def test_best_paths_and_counts_are_those_of_all_paths(problem):
    lengths, emissions, transitions = problem
    packing = Packing.of_lengths(lengths)
    counts, tags = (function(emissions, transitions, packing) for function in (expected_counts, best_paths))
    alone = [oracles.sentence(rows, np.ones(len(rows), bool), transitions) for rows in each(lengths, emissions)]
    for row, known in zip(each(lengths, tags), alone, strict=True):
        assert tuple(row) == tuple(known["paths"][0][0])
    assert_allclose(counts.log_z, [known["log_z"] for known in alone], rtol=1e-9, atol=1e-9)
    assert_allclose(counts.marginals, np.concatenate([known["marginals"] for known in alone]), atol=1e-9)
    assert_allclose(counts.steps, sum(known["steps"] for known in alone), atol=1e-9)
    by_sequence = expected_counts(emissions, transitions, packing, by_sequence=True)
    assert_allclose(by_sequence.steps, [known["steps"] for known in alone], atol=1e-9)


def check_one(emissions, transitions):
    """Compares the counts of one sequence with the enumeration."""
    emissions, transitions = np.array(emissions, "float64"), np.array(transitions, "float64")
    counts = expected_counts(emissions, transitions, Packing.of_lengths([len(emissions)]))
    known = oracles.sentence(emissions, np.ones(len(emissions), bool), transitions)
    assert_allclose(counts.log_z, [known["log_z"]], rtol=1e-12)
    assert_allclose(counts.marginals, known["marginals"], atol=1e-9)
    assert_allclose(counts.steps, known["steps"], atol=1e-9)


def test_the_only_path_is_not_lost_where_each_of_its_steps_is_above_a_float_and_their_product_is_not():
    check_one([[0, -400], [0, -400], [FORBIDDEN, 0]], [[0, FORBIDDEN], [FORBIDDEN, 0]])


def test_a_tag_that_no_path_reaches_does_not_grow_beyond_a_float():
    check_one([[0, FORBIDDEN], *[[-90, 0]] * 10], [[0, FORBIDDEN], [0, 0]])


def test_long_sequences_equal_the_reference_and_empty_ones_have_the_empty_path():
    random = np.random.default_rng(0)
    lengths, transitions = [900, 0, 40, 1], random.normal(size=(4, 4)) * 3
    emissions = random.normal(size=(sum(lengths), 4)) * 3
    packing = Packing.of_lengths(lengths)
    counts = expected_counts(emissions, transitions, packing, by_sequence=True)
    assert counts.log_z[1] == 0 and not counts.steps[1].any()
    for number, rows in enumerate(each(lengths, emissions)):
        if len(rows):
            known = reference(rows, transitions, np.zeros(4), np.zeros(4))
            assert_allclose(counts.log_z[number], known["log_partition"], rtol=1e-12)
            assert_allclose(each(lengths, counts.marginals)[number], known["marginals"], atol=1e-10)
            assert_allclose(counts.steps[number], known["steps"], atol=1e-8)


def test_no_sequences_have_no_paths():
    assert len(best_paths(np.zeros((0, 4)), np.zeros((4, 4)), Packing([], []))) == 0


@pytest.mark.parametrize(
    "scheme", [bmes(list("abcd")), bio(list("abcdefgh")), bioes(list("abcd")), classes(map(str, range(17)))]
)
def test_the_best_path_of_many_tags_is_that_of_all_allowed_paths(scheme):
    random, lengths = np.random.default_rng(0), [3, 1, 2, 3]
    allowed = scheme.allowed_transitions.copy()
    allowed[:, 1] &= len(scheme) % 2 == 0  # nothing may come before a tag, of some schemes
    transitions = np.where(allowed, random.normal(size=allowed.shape), -1e9)
    emissions = random.normal(size=(sum(lengths), len(scheme))) * 2
    tags = best_paths(emissions, transitions, Packing.of_lengths(lengths))
    for row, rows in zip(each(lengths, tags), each(lengths, emissions), strict=True):
        expected = oracles.sentence(rows, np.ones(len(rows), bool), transitions)["paths"][0][0]
        assert tuple(row) == tuple(expected)

"""Tests of kcrf.linear.quasi_newton.

OWL-QN beside minima that are known in closed form, and the conditions that hold at the optimum of a CRF.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from kcrf.linear import LBFGSTrainer, LinearModel, linear_batches, loss_and_gradient
from kcrf.linear.quasi_newton import minimize
from kcrf.tags import bmes

BACKENDS = ["torch"]


@given(st.integers(0, 2**32), st.integers(1, 12))
def test_the_minimum_of_a_quadratic_is_that_of_its_equations(seed, size):
    random = np.random.default_rng(seed)
    root, target = random.normal(size=(size, size)), random.normal(size=size)
    matrix = root @ root.T + np.eye(size)
    found, objective = minimize(
        lambda x: (x @ matrix @ x / 2 - target @ x, matrix @ x - target), np.zeros(size), tolerance=1e-12
    )
    known = np.linalg.solve(matrix, target)
    assert_allclose(found, known, atol=1e-3)
    assert_allclose(objective, -target @ known / 2, rtol=1e-6, atol=1e-9)


@given(st.integers(0, 2**32), st.sampled_from([0.1, 1.0]))
def test_an_l1_penalty_moves_each_coordinate_to_0_and_no_farther(seed, l1):
    random = np.random.default_rng(seed)
    target, weights = random.normal(size=20) * 2, random.uniform(0.5, 3, size=20)

    def function(x):
        return (weights * (x - target) ** 2).sum() / 2, weights * (x - target)

    known = np.sign(target) * np.maximum(np.abs(target) - l1 / weights, 0)
    found, _ = minimize(function, np.zeros(20), l1, tolerance=1e-14)
    assert_allclose(found, known, atol=1e-4)
    assert (found[known == 0] == 0).all()


@pytest.mark.parametrize("l1", [0.0, 0.2])
def test_at_the_optimum_of_a_crf_no_score_can_be_improved(l1):
    """The gradient of every score that is not 0 equals what its penalties pull; of the others it is at most `l1`."""
    random, model = np.random.default_rng(0), LinearModel.new(bmes(), buckets=32)
    windows = [(random.integers(0, 32, (3, 2)).astype("int32"), [1, 2, 3]) for _ in range(4)]
    windows += [(random.integers(0, 32, (2, 2)).astype("int32"), [0, 0]) for _ in range(4)]
    (batch,) = linear_batches(windows, len(windows))
    steps = []
    trainer = LBFGSTrainer(model, l1=l1, l2=0.1, iterations=200)
    for _ in range(3):
        loss = trainer.train_batch(batch, lambda number, logs: steps.append(number))
    assert steps[:3] == [0, 1, 2]
    again, of_scores, of_steps = loss_and_gradient(model, batch)
    assert loss == pytest.approx(again)
    assert (model.scores[0] == 0).all()
    scores = np.concatenate([model.scores[batch.buckets].ravel(), model.transitions.ravel()])
    slopes = np.concatenate([of_scores.ravel(), of_steps.ravel()]) + 0.2 * scores
    assert_allclose(slopes[scores != 0], -l1 * np.sign(scores[scores != 0]), atol=0.02)
    assert (np.abs(slopes[scores == 0]) <= l1 + 0.02).all()
    assert bool(l1) == ((scores == 0).mean() > 0.5)

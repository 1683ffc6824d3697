"""kcrf.linear: The average of two linear models: beside two models that are trained apart, and averaged by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kcrf.linear import AdaGradTrainer, LBFGSTrainer, LinearModel, PooledTrainer, linear_batches
from kcrf.tags import bmes

BACKENDS = ["torch"]
BUCKETS = 64
COLUMNS = [0, 2]
TRAINERS = [AdaGradTrainer, LBFGSTrainer]


def windows(columns=slice(None)):
    random = np.random.default_rng(0)
    lengths = random.integers(1, 7, 12)
    return [(random.integers(0, BUCKETS, (n, 4))[:, columns], random.integers(0, 2, n) * 3) for n in lengths]


def new_trainer(kind):
    return kind(LinearModel.new(bmes(), BUCKETS, constraints=False))


def trained_apart(kind, columns=slice(None)):
    trainer = new_trainer(kind)
    losses = [trainer.train_batch(batch) for batch in linear_batches(windows(columns), 4)]
    return trainer.model, losses


@pytest.mark.parametrize("kind", TRAINERS)
def test_it_is_the_average_of_models_that_are_trained_apart(kind):
    (model, losses), (other, _) = trained_apart(kind), trained_apart(kind, COLUMNS)
    pool = PooledTrainer(new_trainer(kind), new_trainer(kind), COLUMNS, 0.3)
    assert [pool.train_batch(batch) for batch in linear_batches(windows(), 4)] == losses
    assert_allclose(pool.model.scores, 0.7 * model.scores + 0.3 * other.scores, atol=1e-6)
    assert_allclose(pool.model.transitions, 0.7 * model.transitions + 0.3 * other.transitions, atol=1e-6)
    assert np.abs(model.scores - other.scores).max() > 0.1
    assert not pool.model.constraints and pool.model.scheme.labels == bmes().labels


@pytest.mark.parametrize("kind", TRAINERS)
def test_training_resumes_from_its_state(kind):
    first, *rest = linear_batches(windows(), 4)
    whole, resumed = (PooledTrainer(new_trainer(kind), new_trainer(kind), COLUMNS, 0.3) for _ in range(2))
    whole.train_batch(first)
    resumed.load_state({name: array.copy() for name, array in whole.state.items()})
    for trainer in (whole, resumed):
        for batch in rest:
            trainer.train_batch(batch)
    assert_array_equal(whole.model.scores, resumed.model.scores)
    assert_array_equal(whole.model.transitions, resumed.model.transitions)

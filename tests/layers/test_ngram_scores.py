"""kcrf.layers: The scores of n-grams beside a sum that is written out, in use and in training."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kcrf.backend import keras, ops
from kcrf.layers import ConditionalRandomField, NGramScores

IDS = np.array([[[3, 1, 0], [2, 2, 5]], [[0, 0, 0], [5, 4, 1]]])
TABLE = np.random.default_rng(0).normal(size=(6, 2)).astype("float32")


def made(**options):
    layer = NGramScores(2, 6, **options)
    layer(IDS)
    layer.set_weights([TABLE / layer.lr_multiplier, *layer.get_weights()[1:]])
    return layer


def expected(scores, keep=1.0):
    wanted = np.zeros((2, 2, 2))
    for b, t, f in np.ndindex(IDS.shape):
        if IDS[b, t, f]:
            wanted[b, t] += scores[IDS[b, t, f]] * (keep if np.isscalar(keep) else keep[b, t, f])
    return wanted


@pytest.mark.parametrize("multiplier", [1, 10])
def test_emissions_are_the_sum_of_the_scores_of_the_features(multiplier):
    layer = made(lr_multiplier=multiplier)
    assert_allclose(ops.convert_to_numpy(layer(IDS)), expected(TABLE), rtol=1e-5, atol=1e-6)
    assert_allclose(ops.convert_to_numpy(layer.scores), TABLE, rtol=1e-6)


@pytest.mark.once
def test_training_omits_whole_features_and_scales_the_others_up():
    layer = made(dropout=0.5, seed=3)
    means, options = np.zeros((2, 2, 2)), set()
    for _ in range(400):
        scores = ops.convert_to_numpy(layer(IDS, training=True))
        means += scores / 400
        options.add(tuple(np.round(scores[0, 0], 4)))  # of the features 3 and 1
    kept = {(a, b) for a in (0, 2) for b in (0, 2)}
    assert options == {tuple(np.round(a * TABLE[3] + b * TABLE[1], 4)) for a, b in kept}
    assert_allclose(means, expected(TABLE), atol=0.6)


def test_the_scores_learn_as_many_times_faster_as_asked():
    moved = []
    for multiplier in (1, 10):
        inputs = keras.Input((None, 3), dtype="int32")
        layer = NGramScores(2, 6, dropout=0, lr_multiplier=multiplier)
        model = keras.Model(inputs, layer(inputs))
        model.compile(keras.optimizers.SGD(0.01), loss="mse")
        model.fit(IDS, np.ones((2, 2, 2)), verbose=0)
        moved.append(ops.convert_to_numpy(layer.scores))
    assert_allclose(moved[1], 10 * moved[0], rtol=1e-4)
    assert not moved[0][0].any() and moved[0][5].all()  # no feature has no score


@pytest.mark.once
def test_a_saved_model_computes_the_same(tmp_path):
    inputs = keras.Input((None, 3), dtype="int32")
    layer, crf = NGramScores(2, 6), ConditionalRandomField()
    model = keras.Model(inputs, crf(layer(inputs), mask=ops.any(ops.not_equal(inputs, 0), axis=-1)))
    model.compile("adam", loss=crf.sparse_loss)
    model.fit(IDS, np.zeros((2, 2)), verbose=0)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert_allclose(again.predict(IDS, verbose=0), model.predict(IDS, verbose=0), rtol=1e-6)
    assert again.evaluate(IDS, np.zeros((2, 2)), verbose=0) == pytest.approx(
        model.evaluate(IDS, np.zeros((2, 2)), verbose=0), rel=1e-5
    )


@pytest.mark.parametrize("options", [{"tags": 0}, {"buckets": -1}, {"buckets": 2.5}, {"dropout": 1}])
def test_arguments_out_of_range_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        NGramScores(**{"tags": 2, "buckets": 6, **options})


@pytest.mark.parametrize("shape", [(1, 3), (1, 1, 3, 2)])
def test_inputs_without_an_axis_of_features_are_refused(shape):
    with pytest.raises(ValueError, match=r"needs inputs \(batch, time, features\). Received: \(1, "):
        NGramScores(2, 6)(np.ones(shape, "int32"))

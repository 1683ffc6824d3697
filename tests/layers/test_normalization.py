"""kcrf.layers: Conditional layer normalization beside the formula, and beside bert4keras' layer."""

import numpy as np
import pytest
from bert4keras_host import bert4keras_python  # noqa: F401 (a fixture)
from numpy.testing import assert_allclose, assert_array_equal

from kcrf.backend import keras, ops
from kcrf.layers import LayerNormalization

BACKENDS = ["torch", "tensorflow", "jax"]

random = np.random.default_rng(0)
HIDDEN = np.random.default_rng(1).normal(2, 3, size=(2, 4, 5)).astype("float32")
CONDITION = np.random.default_rng(2).normal(size=(2, 3)).astype("float32")


def made(**options):
    layer = LayerNormalization(conditional=True, **options)
    layer([HIDDEN, CONDITION])
    layer.set_weights([random.normal(size=w.shape) for w in layer.get_weights()])
    return layer


@pytest.mark.parametrize("hidden_units", [None, 6])
def test_the_condition_changes_scale_and_offset(hidden_units):
    layer = made(hidden_units=hidden_units, hidden_activation="tanh", epsilon=0.01)
    x, condition = HIDDEN.astype("float64"), CONDITION.astype("float64")
    if hidden_units:
        condition = np.tanh(condition @ ops.convert_to_numpy(layer.hidden_dense.kernel))
    scale = ops.convert_to_numpy(layer.gamma) + condition @ ops.convert_to_numpy(layer.gamma_dense.kernel)
    offset = ops.convert_to_numpy(layer.beta) + condition @ ops.convert_to_numpy(layer.beta_dense.kernel)
    plain = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 0.01)
    wanted = plain * scale[:, None] + offset[:, None]
    assert_allclose(ops.convert_to_numpy(layer([HIDDEN, CONDITION])), wanted, rtol=1e-4, atol=1e-4)


def test_without_a_condition_it_is_the_layer_of_keras():
    ours, theirs = LayerNormalization(epsilon=0.01), keras.layers.LayerNormalization(epsilon=0.01)
    assert_array_equal(ops.convert_to_numpy(ours(HIDDEN)), ops.convert_to_numpy(theirs(HIDDEN)))
    assert [w.shape for w in ours.weights] == [w.shape for w in theirs.weights]


def test_the_mask_of_the_hidden_states_goes_on_and_a_saved_model_is_the_same(tmp_path):
    hidden, condition = keras.Input((None, 5)), keras.Input((3,))
    output = LayerNormalization(conditional=True, hidden_units=2)([keras.layers.Masking()(hidden), condition])
    model = keras.Model([hidden, condition], keras.layers.LSTM(2)(output))
    model.set_weights([random.normal(size=w.shape) for w in model.get_weights()])
    padded = np.concatenate([HIDDEN, HIDDEN * 0], axis=1)
    found = model.predict([HIDDEN, CONDITION], verbose=0)
    assert_allclose(model.predict([padded, CONDITION], verbose=0), found, rtol=1e-5)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert_allclose(loaded.predict([HIDDEN, CONDITION], verbose=0), found, rtol=1e-6)


THEIRS = """
from bert4keras.backend import K
from bert4keras.layers import LayerNormalization
layer = LayerNormalization(conditional=True, hidden_units=6, hidden_activation="tanh")
given = [K.constant(inputs["hidden"]), K.constant(inputs["condition"])]
layer(given)
arrays = {w.name.split("/", 1)[1]: inputs["w%d" % i] for i, w in enumerate(layer.weights)}
layer.set_weights([inputs["w%d" % i] for i in range(len(layer.weights))])
outputs["normalized"] = K.eval(layer(given))
"""


@pytest.mark.once
def test_it_is_the_layer_of_bert4keras(bert4keras_python):  # noqa: F811
    layer = made(hidden_units=6, hidden_activation="tanh")
    gamma, beta, hidden, of_beta, of_gamma = layer.get_weights()
    order = (beta, gamma, hidden, of_beta, of_gamma)
    weights = {f"w{i}": w for i, w in enumerate(order)}
    theirs = bert4keras_python(THEIRS, hidden=HIDDEN, condition=CONDITION, **weights)
    assert_allclose(ops.convert_to_numpy(layer([HIDDEN, CONDITION])), theirs["normalized"], rtol=1e-4, atol=1e-4)


def test_conditional_normalization_without_conditions_is_refused():
    with pytest.raises(ValueError, match="`conditional=True` needs .hidden states, conditions.. Received: shape="):
        LayerNormalization(conditional=True)(HIDDEN)


@pytest.mark.once
def test_all_of_the_layer_computes_in_its_own_precision():
    layer = LayerNormalization(conditional=True, hidden_units=3, dtype="mixed_bfloat16")
    layer.build([(None, None, 4), (None, 2)])
    assert {part.compute_dtype for part in layer._flatten_layers()} == {"bfloat16"}

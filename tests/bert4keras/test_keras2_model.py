"""Tests of kcrf.bert4keras.models.

`Keras2Model` trains what was trainable at `compile`, and draws random numbers anew in each call on every backend.
"""

import numpy as np
import pytest
from changed_keras import changed_keras  # noqa: F401 (a fixture)

from kcrf.backend import K, backend_name, keras
from kcrf.bert4keras.models import Keras2Model
from kcrf.layers import Embedding

pytestmark = pytest.mark.usefixtures("changed_keras")


def test_trains_what_was_trainable_at_compile():
    x, shared, top = keras.Input((3,)), keras.layers.Dense(3, name="shared"), keras.layers.Dense(1, name="top")
    inner = keras.Model(x, shared(x))
    first = Keras2Model(x, top(inner(x)))
    first.compile("sgd", "mse")
    inner.trainable = False
    second = Keras2Model(x, top(inner(x)))
    second.compile("sgd", "mse")
    data = np.eye(3, dtype="float32"), np.ones((3, 1), "float32")

    def changed(train):
        before = [layer.get_weights()[0] for layer in (shared, top)]
        train()
        return [bool(np.any(layer.get_weights()[0] != old)) for layer, old in zip((shared, top), before, strict=True)]

    assert changed(lambda: second.fit(*data, verbose=0)) == [False, True]
    assert changed(lambda: first.fit(*data, verbose=0)) == [True, True]
    assert not inner.trainable and not shared.trainable  # the flags are those of before
    assert changed(lambda: first.train_on_batch(*data)) == [True, True]
    inner.trainable = True
    assert changed(lambda: second.fit(*data, verbose=0)) == [False, True]
    assert changed(lambda: second.train_on_batch(*data)) == [False, True]
    second.compile("sgd", "mse")
    assert changed(lambda: second.fit(*data, verbose=0)) == [True, True]


def test_flags_come_back_after_an_error():
    x, layer = keras.Input((2,)), keras.layers.Dense(1)
    model = Keras2Model(x, layer(x))
    model.compile("sgd", "mse")
    layer.trainable = False
    with pytest.raises(ValueError):
        model.fit(np.ones((4, 7)), np.ones((4, 1)), verbose=0)
    assert not layer.trainable


class Noise(keras.layers.Layer):
    """Draws anew in each call, without a generator of its own."""

    def call(self, inputs):
        return 0 * inputs + K.random_uniform(K.shape(inputs))

    def compute_output_shape(self, input_shape):
        return input_shape


def test_random_functions_draw_anew():
    x = keras.Input((4,))
    model = Keras2Model(x, Noise()(x))
    first, second = (model.predict(np.zeros((8, 4)), batch_size=4, verbose=0) for _ in range(2))
    assert len(np.unique([first, second])) == 64


def test_random_functions_without_a_generator():
    x = keras.Input((4,))
    model = keras.Model(x, Noise()(x))
    if backend_name() == "jax":
        with pytest.raises(ValueError, match="from kcrf.bert4keras.models import Keras2Model as Model"):
            model.predict(np.zeros((2, 4)), verbose=0)
    else:
        assert len(np.unique(model.predict(np.zeros((2, 4)), verbose=0))) == 8


@pytest.mark.once
def test_a_saved_model_is_loaded_with_its_class(tmp_path):
    x = keras.Input((2,))
    model = Keras2Model(x, keras.layers.Dense(1)(x), name="mine")
    model.compile("sgd", "mse")
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert type(again) is Keras2Model and again.name == "mine"
    np.testing.assert_array_equal(again.predict(np.eye(2), verbose=0), model.predict(np.eye(2), verbose=0))
    again.layers[-1].trainable = False
    before = again.layers[-1].get_weights()[0]
    again.fit(np.eye(2), np.ones((2, 1)), verbose=0)  # loading compiles
    assert np.any(again.layers[-1].get_weights()[0] != before)


def test_fitting_a_frozen_model_names_keras2_model():
    tokens = keras.Input((None,))
    model = keras.Model(tokens, keras.layers.Dense(1)(Embedding(5, 2)(tokens)))
    model.compile("sgd", "mse")
    model.trainable = False
    with pytest.raises(ValueError, match="from kcrf.bert4keras.models import Keras2Model as Model"):
        model.fit(np.ones((2, 3)), np.ones((2, 3, 1)))

"""Tests of kcrf.bert4keras.models.

Calls of Keras 2 on models with a layer of kcrf: the same numbers as that of Keras 3, or an error.
"""

import numpy as np
import pytest
from changed_keras import changed_keras  # noqa: F401 (a fixture)
from numpy.testing import assert_array_equal
from seeds import set_seeds

from kcrf.backend import keras, search_layer
from kcrf.bert4keras.models import build_transformer_model
from kcrf.layers import LayerNormalization

pytestmark = pytest.mark.usefixtures("changed_keras")
SIZES = dict(vocab_size=9, hidden_size=4, num_hidden_layers=3, num_attention_heads=2, intermediate_size=8)
SIZES |= dict(dropout_rate=0.0, attention_dropout_rate=0.0)
TOKENS = np.array([[1, 2, 3], [4, 5, 0]])


def classifier():
    set_seeds(1)
    bert = build_transformer_model(**SIZES)
    x = keras.layers.GlobalAveragePooling1D()(bert.output)
    model = keras.Model(bert.input, keras.layers.Dense(2)(x))
    model.compile("sgd", "mse")
    return model


def batches(*lengths):
    """Batches as scripts for Keras 2 yield them: lists."""
    while True:
        for length in lengths or (3,):
            yield [TOKENS[:, :length], TOKENS[:, :length] * 0], np.ones((2, 2))


@pytest.mark.slow
def test_fit_generator_is_fit():
    one, other = classifier(), classifier()
    one.fit_generator(batches(), 4, epochs=2, verbose=0, workers=1)
    for _, (x, y) in zip(range(8), batches()):
        other.train_on_batch(x, y)
    for a, b in zip(one.get_weights(), other.get_weights()):
        np.testing.assert_allclose(a, b, atol=1e-6)
    x, y = next(batches())
    one.fit_generator(batches(3, 2, 1), steps_per_epoch=3, verbose=0)
    assert one.evaluate_generator(batches(), steps=1) == pytest.approx(one.evaluate(x, y, verbose=0))
    assert_array_equal(one.predict_generator(iter([(x,)]), steps=1), one.predict(x, verbose=0))


@pytest.mark.once
def test_predict_takes_lists_of_numbers():
    model, (x, _) = classifier(), next(batches())
    as_lists = [part.tolist() for part in x]
    assert_array_equal(model.predict(as_lists, verbose=0), model.predict(x, verbose=0))
    assert_array_equal(model.predict_on_batch(as_lists), model.predict_on_batch(x))
    single = keras.Sequential([keras.Input((3,)), LayerNormalization()])
    assert_array_equal(single.predict([[1, 2, 4]], verbose=0), single.predict(np.array([[1, 2, 4]]), verbose=0))


@pytest.mark.once
def test_a_callback_may_set_its_model():
    class Evaluator(keras.callbacks.Callback):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def on_epoch_end(self, epoch, logs=None):
            self.found = self.model.predict(next(batches())[0], verbose=0)

    model = classifier()
    evaluator = Evaluator(model)
    assert evaluator.model is model
    model.fit(*next(batches()), verbose=0, callbacks=[evaluator])
    assert_array_equal(evaluator.found, model.predict(next(batches())[0], verbose=0))


@pytest.mark.once
def test_layers_of_albert_have_an_output_for_each_call():
    albert = build_transformer_model(**SIZES, model="albert")
    states = build_transformer_model(**SIZES, model="albert", output_layers=[0, 1, 2])
    states.set_weights(albert.get_weights())
    norm = albert.get_layer("Transformer-FeedForward-Norm")
    for index, state in enumerate(states.predict([TOKENS, TOKENS * 0], verbose=0)):
        model = keras.Model(albert.input, norm.get_output_at(index))
        assert_array_equal(model.predict([TOKENS, TOKENS * 0], verbose=0), state)
    assert norm.get_output_at(-1) is norm.get_output_at(2)
    with pytest.raises(ValueError, match="`Transformer-FeedForward-Norm` was called 3 times. Received: node_index=3"):
        norm.get_output_at(3)


@pytest.mark.slow
def test_load_model_finds_what_save_has_written(tmp_path):
    model = classifier()
    with pytest.warns(UserWarning, match="writes '.*test.keras'"):
        model.save(tmp_path / "test.model")
    for path in (tmp_path / "test.model", str(tmp_path / "test.model"), tmp_path / "test.keras"):
        loaded = keras.models.load_model(path)
        assert_array_equal(loaded.predict([TOKENS, TOKENS * 0]), model.predict([TOKENS, TOKENS * 0]))
    with pytest.raises(ValueError, match="File format not supported: filepath=.*absent.model"):
        keras.models.load_model(tmp_path / "absent.model")


@pytest.mark.once
def test_a_replaced_train_function_is_refused_with_what_to_call_instead():
    model = classifier()
    with pytest.raises(NotImplementedError, match=r"adversarial: adversarial\(model, 'Embedding-Token', epsilon\)"):
        model._make_train_function()
    with pytest.raises(ValueError, match=r"adversarial.gradient_penalty\(model, 'Embedding-Token', scale\)"):
        search_layer(model(next(batches())[0]), "Embedding-Token")


def test_models_without_a_layer_of_ours_are_left_alone():
    plain = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    for name in ("fit_generator", "predict_generator", "evaluate_generator", "_make_train_function"):
        assert not hasattr(plain, name) and not hasattr(keras.Model, name) and hasattr(classifier(), name)
    with pytest.raises(ValueError, match="Unrecognized data type"):
        plain.predict([[1, 2]], verbose=0)


@pytest.mark.once
def test_fit_generator_keeps_the_order_of_a_sequence_if_told_to():
    class Batches(keras.utils.PyDataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            order.append(index)
            return next(batches())

    order = []
    classifier().fit_generator(Batches(), shuffle=False, verbose=0)
    assert order[-8:] == list(range(8))

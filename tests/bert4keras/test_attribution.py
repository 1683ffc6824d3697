"""Tests of kcrf.bert4keras.attribution.

Integrated gradients: they sum to the difference of the scores, are 0 at padding, and equal a written-out average.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kcrf.backend import keras
from kcrf.bert4keras.attribution import GradientTimesInput, integrated_gradients
from kcrf.models import build_transformer_model

TOKENS = np.array([[1, 2, 3, 4, 5], [6, 7, 8, 0, 0]])
SIZES = dict(vocab_size=9, hidden_size=4, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)


def drawn(model):
    model.set_weights([np.random.default_rng(0).normal(size=w.shape) / 2 for w in model.get_weights()])
    return model


def bert_classifier():
    """A small BERT with three labels."""
    bert = build_transformer_model(**SIZES)
    first = keras.layers.Lambda(lambda x: x[:, 0])
    first.supports_masking = True
    return drawn(keras.Model(bert.input, keras.layers.Dense(3, activation="softmax")(first(bert.output))))


@pytest.mark.once
def test_they_sum_to_the_difference_of_the_scores_and_padding_has_none():
    model = bert_classifier()
    shares = integrated_gradients(model, [TOKENS, TOKENS * 0], [2, 0], steps=60)
    assert shares.shape == (2, 5, 4)
    scores = model.predict([TOKENS, TOKENS * 0], verbose=0)
    embeddings = model.get_layer("Embedding-Token").embeddings
    embeddings.assign(np.zeros(embeddings.shape))
    without = model.predict([TOKENS, TOKENS * 0], verbose=0)
    assert_allclose(shares.sum((1, 2)), [(scores - without)[0, 2], (scores - without)[1, 0]], atol=1e-4)
    assert (shares[1, 3:] == 0).all() and (shares[0] != 0).any(axis=1).all()


@pytest.mark.once
def test_inputs_are_taken_by_name_or_in_the_order_of_the_model():
    model = bert_classifier()
    expected = integrated_gradients(model, [TOKENS, TOKENS * 0], [2, 0], steps=2)
    by_name = {x.name: TOKENS * (x.name == "Input-Token") for x in reversed(model.inputs)}
    assert_allclose(integrated_gradients(model, by_name, [2, 0], steps=2), expected)
    for inputs in (TOKENS, [TOKENS], {"Input-Token": TOKENS}):
        with pytest.raises(ValueError, match="`inputs` needs Input-Token, Input-Segment. Received: 1 of them"):
            integrated_gradients(model, inputs, [2, 0])
    with pytest.raises(
        ValueError, match="in the order of .* Input-Token, Input-Segment, with numbers below 9 for .* 10"
    ):
        integrated_gradients(model, [TOKENS + 2, TOKENS * 0], [2, 0])


def test_the_average_is_over_the_middles_of_equal_steps():
    tokens = keras.Input((5,), dtype="int32")
    x = keras.layers.Embedding(9, 3, name="words")(tokens)
    x = keras.layers.Dense(2, activation="tanh")(keras.layers.GlobalAveragePooling1D()(x))
    model = drawn(keras.Model(tokens, x))
    table, kernel, bias = (np.asarray(w, "float64") for w in model.get_weights())
    found = integrated_gradients(model, TOKENS, [1, 0], embedding="words", steps=3)
    for row, ids, label in zip(found, TOKENS, (1, 0)):
        mean = table[ids].mean(0)
        slopes = [1 - np.tanh(share * mean @ kernel[:, label] + bias[label]) ** 2 for share in (1 / 6, 3 / 6, 5 / 6)]
        assert_allclose(row, table[ids] * kernel[:, label] * np.mean(slopes) / 5, rtol=1e-4, atol=1e-6)


@pytest.mark.once
def test_gradient_times_input_at_scaled_embeddings_averages_to_the_same():
    """As the example of bert4keras does it, with embeddings that are set to a share of their values."""
    model = bert_classifier()
    expected = integrated_gradients(model, [TOKENS, TOKENS * 0], [2, 0], steps=4)
    label, layer = keras.Input((1,)), model.get_layer("Embedding-Token")
    grads = keras.Model([*model.inputs, label], GradientTimesInput()([layer.output, model.output, label]))
    values = keras.ops.convert_to_numpy(layer.embeddings)
    average, labels = 0, np.array([[2], [0]], "float32")
    for share in (1 / 8, 3 / 8, 5 / 8, 7 / 8):
        layer.embeddings.assign(share * values)
        average += grads.predict([TOKENS, TOKENS * 0, labels], verbose=0) / share / 4
    assert_allclose(average, expected, rtol=1e-3, atol=1e-6)
    assert len(grads.weights) == len(model.weights)


def test_what_cannot_be_explained_is_refused():
    bert = build_transformer_model(**SIZES)
    with pytest.raises(ValueError, match=r"`model` must have one output \(batch, labels\)"):
        integrated_gradients(bert, [TOKENS, TOKENS * 0], [0, 0])
    model = keras.Model(bert.input, keras.layers.GlobalAveragePooling1D()(bert.output))
    with pytest.raises(ValueError, match="`embedding` must name a layer of the model. Received: 'words'"):
        integrated_gradients(model, [TOKENS, TOKENS * 0], [0, 0], embedding="words")
    with pytest.raises(ValueError, match="one input of the model, once. Received: .*, which reads inputs 0 times"):
        integrated_gradients(model, [TOKENS, TOKENS * 0], [0, 0], embedding="Embedding-Norm")
    for labels in ([0], [0, 4], [0, -1], [[0], [0]], [0.0, 1.0], 0):
        with pytest.raises(ValueError, match=r"`labels` must be ints of shape \(2,\), from 0 to 3. Received: shape="):
            integrated_gradients(model, [TOKENS, TOKENS * 0], labels)
    with pytest.raises(ValueError, match="`steps` must be at least 1. Received: 0"):
        integrated_gradients(model, [TOKENS, TOKENS * 0], [0, 0], steps=0)


@pytest.mark.once
def test_embeddings_that_another_model_uses_too_are_those_of_this_one():
    table, dense = keras.layers.Embedding(9, 3, name="words"), keras.layers.Dense(2)
    models = []
    for _ in range(2):
        tokens = keras.Input((5,), dtype="int32")
        models.append(keras.Model(tokens, dense(keras.layers.GlobalAveragePooling1D()(table(tokens)))))
    found = [integrated_gradients(model, TOKENS, [1, 0], embedding="words") for model in models]
    assert_allclose(found[0], found[1], rtol=1e-6)
    again = [integrated_gradients(model, TOKENS, [1, 0], embedding="words") for model in models]
    np.testing.assert_array_equal(again, found)
    one, other = keras.Input((5,), dtype="int32"), keras.Input((5,), dtype="int32")
    pooled = keras.layers.GlobalAveragePooling1D()(table(one) + table(other))
    with pytest.raises(ValueError, match="once. Received: 'words', which reads inputs 2 times"):
        integrated_gradients(keras.Model([one, other], dense(pooled)), [TOKENS, TOKENS], [0, 0], embedding="words")


@pytest.mark.once
def test_one_layer_after_the_other_is_explained():
    model = bert_classifier()
    names = ["Embedding-Token", "Embedding-Segment", "Embedding-Token"]
    found = [integrated_gradients(model, [TOKENS, TOKENS * 0], [2, 0], embedding=name, steps=2) for name in names]
    np.testing.assert_array_equal(found[0], found[2])
    assert np.abs(found[1]).max() > 0

"""Tests of kcrf.bert4keras.adversarial.

Steps of adversarial training beside the step written out: NumPy, gradients by central differences in float64.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from seeds import set_seeds

from kcrf.backend import backend_name, keras
from kcrf.bert4keras.adversarial import adversarial, gradient_penalty, virtual_adversarial
from kcrf.layers import ConditionalRandomField, MaximumEntropyMarkovModel
from kcrf.models import build_transformer_model
from kcrf.optimizers import Adam, extend_with_exponential_moving_average, extend_with_lookahead

random = np.random.default_rng(0)
WORDS, LABELS = random.integers(0, 6, (5, 3)), random.normal(size=(5, 2)).astype("float32")
RATE = 0.1


def small_model(optimizer=None):
    set_seeds(1)
    inputs = keras.Input((3,), dtype="int32")
    x = keras.layers.Embedding(6, 4, name="Embedding-Token")(inputs)
    x = keras.layers.Dense(2, activation="tanh")(keras.layers.GlobalAveragePooling1D()(x))
    model = keras.Model(inputs, x)
    model.set_weights([np.random.default_rng(2).normal(size=w.shape) for w in model.get_weights()])
    model.compile(optimizer or keras.optimizers.SGD(RATE), "mse")
    return model


def loss(weights):
    embeddings, kernel, bias = weights
    return np.mean((np.tanh(embeddings[WORDS].mean(1) @ kernel + bias) - LABELS) ** 2)


def gradients(function, weights, step=1e-4):
    """The gradient of a function of a list of arrays, by central differences."""
    found = [np.zeros_like(w) for w in weights]
    for array, gradient in zip(weights, found):
        for place in np.ndindex(array.shape):
            kept, values = array[place], []
            for change in (step, -step):
                array[place] = kept + change
                values.append(function(weights))
            array[place] = kept
            gradient[place] = (values[0] - values[1]) / (2 * step)
    return found


def as_float64(model):
    return [np.array(w, "float64") for w in model.get_weights()]


@pytest.mark.parametrize("how", ["fit", "train_on_batch"])
def test_a_step_is_taken_at_the_moved_embeddings_and_the_move_taken_back(how):
    model = small_model()
    weights = as_float64(model)
    adversarial(model, epsilon=0.5)
    for _ in range(2):
        slope = gradients(loss, weights)[0]
        moved = [weights[0] + 0.5 * slope / np.sqrt((slope**2).sum()), *weights[1:]]
        weights = [w - RATE * g for w, g in zip(weights, gradients(loss, moved))]
    if how == "fit":
        model.fit(WORDS, LABELS, batch_size=5, epochs=2, verbose=0)
    else:
        for _ in range(2):
            model.train_on_batch(WORDS, LABELS)
    for found, expected in zip(model.get_weights(), weights):
        assert_allclose(found, expected, atol=2e-5)


def test_averages_and_slow_weights_are_of_embeddings_that_were_not_moved():
    averaging = extend_with_exponential_moving_average(keras.optimizers.SGD)(RATE, ema_momentum=0.5)
    looking = extend_with_lookahead(keras.optimizers.SGD)(RATE, steps_per_slow_update=2)
    found = {}
    for optimizer in (averaging, looking):
        model = small_model(optimizer)
        path = [weights := as_float64(model)]
        adversarial(model, epsilon=0.5)
        for _ in range(2):
            slope = gradients(loss, weights)[0]
            moved = [weights[0] + 0.5 * slope / np.sqrt((slope**2).sum()), *weights[1:]]
            path.append(weights := [w - RATE * g for w, g in zip(weights, gradients(loss, moved))])
            model.train_on_batch(WORDS, LABELS)
        found[optimizer] = model
    start, one, two = path
    averaging.apply_ema_weights()
    for found_one, first, second in zip(found[averaging].get_weights(), one, two):
        assert_allclose(found_one, (first + 2 * second) / 3, atol=2e-5)
    for found_one, before, second in zip(found[looking].get_weights(), start, two):
        assert_allclose(found_one, (before + second) / 2, atol=2e-5)


def test_the_embeddings_of_two_layers_are_moved_in_one_step():
    """A move of length 0 changes nothing, whether it begins before the other one or after it."""
    found = []
    for layers in ({"One": 0.5}, {"Two": 0.0, "One": 0.5}, {"One": 0.5, "Two": 0.0}):
        set_seeds(1)
        inputs = keras.Input((3,), dtype="int32")
        x = keras.layers.Add()([keras.layers.Embedding(6, 2, name=name)(inputs) for name in ("One", "Two")])
        model = keras.Model(inputs, keras.layers.GlobalAveragePooling1D()(x))
        model.compile(keras.optimizers.Adam(RATE), "mse")
        for name, epsilon in layers.items():
            adversarial(model, name, epsilon)
        model.fit(WORDS, LABELS, batch_size=5, epochs=2, verbose=0)
        found.append(model.get_weights())
    for alone, *others in zip(*found, strict=True):
        for other in others:
            assert_allclose(other, alone, atol=1e-6)


@pytest.mark.once
def test_a_virtual_step_is_taken_where_the_prediction_changes_most():
    """After many iterations every random start has led to one of two directions."""
    model = small_model()
    weights = as_float64(model)
    predicted = np.tanh(weights[0][WORDS].mean(1) @ weights[1] + weights[2])
    virtual_adversarial(model, epsilon=0.5, xi=0.5, iterations=30)

    def loss_at(weights):
        embeddings, kernel, bias = weights
        return np.mean((np.tanh(embeddings[WORDS].mean(1) @ kernel + bias) - predicted) ** 2)

    model.fit(WORDS, LABELS * 0 + 7, batch_size=5, verbose=0)
    expected = []
    for sign in (1, -1):
        direction = sign * np.random.default_rng(3).normal(size=weights[0].shape)
        for _ in range(30):
            moved = [weights[0] + 0.5 * direction / np.linalg.norm(direction), *weights[1:]]
            direction = gradients(loss_at, moved)[0]
        moved = [weights[0] + 0.5 * direction / np.linalg.norm(direction), *weights[1:]]
        expected.append([w - RATE * g for w, g in zip(weights, gradients(loss_at, moved))])
    found = as_float64(model)
    errors = [max(np.abs(a - b).max() for a, b in zip(found, wanted)) for wanted in expected]
    steps = max(np.abs(a - b).max() for a, b in zip(found, weights))
    assert min(errors) < 0.02 * steps < max(errors)


@pytest.mark.once
def test_a_virtual_step_draws_a_new_direction_each_time():
    model = small_model(keras.optimizers.SGD(0.0))
    virtual_adversarial(model, iterations=0)
    losses = [float(model.train_on_batch(WORDS, LABELS)) for _ in range(3)]
    assert len({round(value, 6) for value in losses}) == 3


@pytest.mark.parametrize("compiled_again", [False, True])
def test_the_penalty_is_half_the_squared_norm_of_the_gradient(compiled_again):
    model = small_model()
    weights = as_float64(model)
    gradient_penalty(model, scale=3.0)
    if compiled_again:
        model.compile(keras.optimizers.SGD(RATE), "mse")

    def penalized(weights):
        return loss(weights) + 1.5 * (gradients(loss, weights)[0] ** 2).sum()

    expected = [w - RATE * g for w, g in zip(weights, gradients(penalized, weights, 1e-3))]
    plain = loss(weights)
    assert_allclose(model.evaluate(WORDS, LABELS, batch_size=5, verbose=0), plain, rtol=1e-5)
    model.fit(WORDS, LABELS, batch_size=5, epochs=1, verbose=0)
    for found, wanted in zip(model.get_weights(), expected):
        assert_allclose(found, wanted, atol=1e-4)
    assert_allclose(model.evaluate(WORDS, LABELS, batch_size=5, verbose=0), loss(as_float64(model)), rtol=1e-5)


@pytest.mark.slow
def test_the_penalty_works_through_fused_attention():
    sizes = dict(vocab_size=9, hidden_size=4, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
    bert = build_transformer_model(**sizes, dropout_rate=0.0, attention_dropout_rate=0.0)
    model = keras.Model(bert.input, keras.layers.GlobalAveragePooling1D()(bert.output))
    model.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=backend_name() == "jax")
    tokens, labels = np.array([[1, 2, 3]]), np.ones((1, 4))
    gradient_penalty(model, scale=0.0)
    before = model.get_weights()
    model.train_on_batch([tokens, tokens * 0], labels)
    plain = model.get_weights()
    model.set_weights(before)
    gradient_penalty(model, scale=1.0)
    model.train_on_batch([tokens, tokens * 0], labels)
    assert any(np.abs(a - b).max() > 1e-4 for a, b in zip(plain, model.get_weights()))


def tagger(kind):
    inputs = keras.Input((3,), dtype="int32")
    layer = kind(name="Tags")
    model = keras.Model(inputs, layer(keras.layers.Embedding(6, 4, name="Embedding-Token")(inputs)))
    model.compile("sgd", loss=layer.sparse_loss)
    return model


@pytest.mark.parametrize("kind", [ConditionalRandomField, MaximumEntropyMarkovModel])
def test_virtual_adversarial_training_is_refused_where_the_loss_compares_scores_with_tags(kind):
    with pytest.raises(ValueError, match="compares two predictions. Received: a model with `Tags`"):
        virtual_adversarial(tagger(kind))


@pytest.mark.parametrize("kind", [ConditionalRandomField, MaximumEntropyMarkovModel])
def test_the_penalty_is_refused_where_the_loss_has_no_second_derivatives(kind):
    model = tagger(kind)
    if kind is ConditionalRandomField:
        with pytest.raises(ValueError, match="second derivatives. Received: a model with the CRF `Tags`"):
            gradient_penalty(model)
    else:
        gradient_penalty(model)


def test_an_interrupted_step_leaves_the_embeddings_as_they_were():
    if backend_name() == "jax":
        pytest.skip("JAX changes no variable during a step")

    class Stops(keras.layers.Layer):
        left = 99

        def call(self, x):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
            return x

    inputs = keras.Input((3,), dtype="int32")
    stops = Stops()
    x = stops(keras.layers.Embedding(6, 2, name="Embedding-Token")(inputs))
    model = keras.Model(inputs, keras.layers.GlobalAveragePooling1D()(x))
    model.compile(keras.optimizers.SGD(0.0), "mse", run_eagerly=True)
    before = model.get_weights()
    adversarial(model)
    stops.left = 2  # the first pass computes the gradient
    with pytest.raises(KeyboardInterrupt):
        model.train_on_batch(WORDS, LABELS)
    assert_allclose(model.get_weights()[0], before[0], atol=1e-6)


@pytest.mark.once
@pytest.mark.parametrize("function", [adversarial, gradient_penalty])
def test_a_second_call_replaces_the_first(function):
    models = [small_model() for _ in range(2)]
    function(models[0], "Embedding-Token", 0.5)
    function(models[1], "Embedding-Token", 7.0)
    if function is gradient_penalty:
        adversarial(models[0], epsilon=0.1), adversarial(models[1], epsilon=0.1)  # another change stays
    function(models[1], "Embedding-Token", 0.5)
    for model in models:
        model.train_on_batch(WORDS, LABELS)
    for one, other in zip(*(model.get_weights() for model in models), strict=True):
        assert_allclose(one, other, rtol=1e-6)


@pytest.mark.once
def test_epsilon_zero_is_plain_training_and_our_optimizer_sees_it():
    plain, other = small_model(Adam(0.01)), small_model(Adam(0.01))
    adversarial(other, epsilon=0.0)
    for model in (plain, other):
        model.fit(WORDS, LABELS, batch_size=2, epochs=2, shuffle=False, verbose=0)
    for one, two in zip(plain.get_weights(), other.get_weights()):
        assert_allclose(one, two, atol=1e-6)


def test_what_cannot_work_is_refused():
    model = small_model()
    with pytest.raises(ValueError, match=r"one of \['Embedding-Token'\]. Received: 'Embeddings'"):
        adversarial(model, "Embeddings")
    model.get_layer("Embedding-Token").trainable = False
    with pytest.raises(ValueError, match="embeddings must be trained. Received: 'Embedding-Token', which is frozen"):
        adversarial(model)

"""kcrf.layers.learning_rates: a layer that learns k times as fast, whatever the layer, and how large k should be."""

import numpy as np
import pytest
from conftest import few
from numpy.testing import assert_allclose, assert_array_equal
from seeds import set_seeds

from kcrf.backend import backend_name, keras, ops, path_of
from kcrf.layers import ConditionalRandomField, SetLearningRate, suggest_lr_multiplier
from kcrf.optimizers import (
    AdamWeightDecay,
    extend_with_exponential_moving_average,
    extend_with_layer_adaptation,
    extend_with_lookahead,
)

BACKENDS = ["torch", "tensorflow", "jax"]

random = np.random.default_rng(0)
X = random.normal(size=(8, 6)).astype("float32")
Y = random.normal(size=(8, 3)).astype("float32")
WORDS = np.random.default_rng(1).integers(1, 20, (16, 6))
TAGS = WORDS % 4


def numpy(x):
    return ops.convert_to_numpy(x)


def effective(layer):
    """The weights in force of a wrapped layer, (name, value) in order."""
    return {path_of(w): numpy(w) * layer.multiplier for w in layer.layer.trainable_weights}


def dense_model(wrap):
    """Two dense layers, the second one wrapped; always the same function at first."""
    inputs = keras.Input((6,))
    first = keras.layers.Dense(4, kernel_initializer=keras.initializers.RandomNormal(seed=1))
    head = wrap(
        keras.layers.Dense(3, kernel_initializer=keras.initializers.RandomNormal(seed=2), bias_initializer="ones")
    )
    return keras.Model(inputs, head(first(inputs))), first, head


def crf_model(**arguments):
    set_seeds(3)
    inputs = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(20, 8)(inputs)
    layer = ConditionalRandomField(name="CRF", **arguments)
    return keras.Model(inputs, layer(keras.layers.Dense(4)(x))), layer


# suggest_lr_multiplier


@pytest.mark.parametrize(
    ("learning_rate", "steps", "k"),
    [
        (1e-5, 10_000, 1000.0),  # the two published settings
        (1e-3, 10_000, 10.0),
        (3e-4, 250, 33.0),
        (3e-4, 125, 67.0),  # 125 steps at 2e-2 are 2.5
        (1e-5, 5, 10_000.0),  # at most 0.1
        (0.5, 1000, 1.0),  # never slower than the rest
    ],
)
def test_the_suggestion_aims_at_a_rate_of_a_hundredth_and_higher_in_short_runs(learning_rate, steps, k):
    assert suggest_lr_multiplier(learning_rate, steps) == k


@pytest.mark.parametrize(("learning_rate", "steps"), [(0.0, 10), (1e-3, 0), (-1.0, 10)])
def test_a_suggestion_needs_positive_numbers(learning_rate, steps):
    with pytest.raises(ValueError, match=f"positive.* Received: learning_rate={learning_rate}, steps={steps}"):
        suggest_lr_multiplier(learning_rate, steps)


def test_a_suggestion_needs_the_number_of_a_schedule():
    schedule = keras.optimizers.schedules.CosineDecay(1e-3, 100)
    with pytest.raises(
        ValueError, match="`learning_rate` must be a number, of a schedule the highest. Received: .*CosineDecay"
    ):
        suggest_lr_multiplier(schedule, 100)


def test_weights_that_were_saved_under_another_multiplier_act_the_same_and_a_warning_says_so(tmp_path):
    model, layer = crf_model(lr_multiplier=100, use_boundary=True)
    layer._trans.assign(random.normal(size=(4, 4)).astype("float32"))
    layer._end.assign(random.normal(size=4).astype("float32"))
    model.save_weights(tmp_path / "model.weights.h5")
    other, other_layer = crf_model(lr_multiplier=10, use_boundary=True)
    with pytest.warns(UserWarning, match="`CRF` was saved with lr_multiplier=100 and has 10 now"):
        other.load_weights(tmp_path / "model.weights.h5")
    for name in ("trans", "start", "end"):
        assert_allclose(numpy(getattr(other_layer, name)), numpy(getattr(layer, name)), rtol=1e-5)
    model.load_weights(tmp_path / "model.weights.h5")  # no warning


def test_setting_the_multiplier_keeps_the_scores_and_rescales_what_is_stored():
    _, layer = crf_model(lr_multiplier=10, use_boundary=True)
    layer._start.assign(np.arange(4, dtype="float32"))
    before = [numpy(x) for x in (layer.trans, layer.start, layer.end)]
    layer.set_lr_multiplier(50)
    assert float(layer.multiplier) == 50
    for now, then in zip((layer.trans, layer.start, layer.end), before, strict=True):
        assert_allclose(numpy(now), then, rtol=1e-6)
    assert_allclose(numpy(layer._trans) * 50, before[0], rtol=1e-6)


OPTIMIZERS = {
    "plain": lambda: keras.optimizers.Adam(1e-3, epsilon=1e-12),
    "lookahead": lambda: extend_with_lookahead(keras.optimizers.Adam)(1e-3, steps_per_slow_update=3, epsilon=1e-12),
    "sgd": lambda: keras.optimizers.SGD(1e-3, momentum=0.9),
    "decay": lambda: AdamWeightDecay(1e-3, epsilon=1e-12, weight_decay_rate=1.0),
    "prior 1": lambda: AdamWeightDecay(1e-3, epsilon=1e-12, weight_decay_rate=0, prior_weight_decay_rate=1.0),
    "prior 20": lambda: AdamWeightDecay(1e-3, epsilon=1e-12, weight_decay_rate=0, prior_weight_decay_rate=20.0),
    "average": lambda: extend_with_exponential_moving_average(keras.optimizers.Adam)(
        1e-3, ema_momentum=0.9, epsilon=1e-12
    ),
    "use_ema": lambda: keras.optimizers.Adam(1e-3, use_ema=True, ema_momentum=0.9, epsilon=1e-12),
    "overwritten": lambda: keras.optimizers.Adam(
        1e-3, use_ema=True, ema_momentum=0.9, ema_overwrite_frequency=4, epsilon=1e-12
    ),
}


@pytest.mark.once
@pytest.mark.parametrize(
    "name", few("lookahead", "plain", "prior 20", "average", *["use_ema"][: backend_name() != "jax"])
)
def test_a_change_between_updates_is_a_change_of_the_rate_alone(name):
    """A rate of 0 shows it: nothing may move, whatever the optimizer remembers, but for what it does by itself."""
    model, layer = crf_model(lr_multiplier=1, transition_initializer=keras.initializers.Constant(3.0))
    other, same = crf_model(lr_multiplier=1, transition_initializer=keras.initializers.Constant(3.0))
    for each, crf in ((model, layer), (other, same)):
        each.compile(OPTIMIZERS[name](), loss=crf.sparse_loss)
        crf.set_lr_multiplier(10)
        each.fit(WORDS, TAGS, epochs=2, batch_size=8, shuffle=False, verbose=0)
        each.optimizer.learning_rate = 0.0
    layer.set_lr_multiplier(400, model.optimizer)
    for function in ("train", "test"):  # the number is part of compiled steps; `compile` would reset the optimizer
        getattr(model, f"make_{function}_function")(force=True)
    for each in (model, other):
        each.fit(WORDS, TAGS, epochs=3, batch_size=8, shuffle=False, verbose=0)
    assert_allclose(numpy(layer.trans), numpy(same.trans), rtol=1e-4)


@pytest.mark.once
def test_a_layer_that_was_trained_asks_for_its_optimizer():
    model, layer = crf_model(lr_multiplier=10)
    model.compile("sgd", loss=layer.sparse_loss)
    model.fit(WORDS, TAGS, verbose=0)
    with pytest.raises(ValueError, match="needs the optimizer of a layer that was trained"):
        layer.set_lr_multiplier(2)
    layer.set_lr_multiplier(2, model.optimizer)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ConditionalRandomField("auto"), "positive number. Received: lr_multiplier='auto'"),
        (lambda: crf_model()[1].set_lr_multiplier(0), "`k` must be a positive number. Received: k=0"),
        (lambda: ConditionalRandomField().set_lr_multiplier(2), "needs a layer that is built"),
        (lambda: SetLearningRate(keras.layers.Dense(2), -1), "`multiplier` must be a positive number. Received: multi"),
        (
            lambda: SetLearningRate(keras.layers.Dense(2), "auto"),
            "must be a positive number. Received: multiplier='auto'",
        ),
    ],
)
def test_what_cannot_work_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# SetLearningRate


@pytest.mark.parametrize("optimizer", few("Adam", "SGD"))
@pytest.mark.parametrize("k", few(10, 0.1, 1000))
def test_a_wrapped_layer_learns_exactly_k_times_as_fast(optimizer, k):
    def moves(multiplier):
        model, first, head = dense_model(lambda layer: SetLearningRate(layer, multiplier))
        before = [numpy(first.kernel), *effective(head).values()]
        rule = getattr(keras.optimizers, optimizer)(1e-4, **({"epsilon": 1e-12} if optimizer == "Adam" else {}))
        model.compile(rule, "mse")
        model.fit(X, Y, batch_size=8, verbose=0)
        after = [numpy(first.kernel), *effective(head).values()]
        return [(new - old).astype("float64") for new, old in zip(after, before, strict=True)]

    (rest, *one), (same, *many) = moves(1), moves(k)
    assert_allclose(same, rest, rtol=1e-3, atol=1e-8)
    for fast, slow in zip(many, one, strict=True):
        assert np.abs(slow).max() > 1e-6
        assert_allclose(fast, k * slow, rtol=1e-2, atol=k * 1e-7)


def test_the_global_gradient_norm_does_not_depend_on_k():
    """Clipping to a norm that only a gradient scaled by k could exceed changes nothing."""

    def trained(clip):
        model, first, _ = dense_model(lambda layer: SetLearningRate(layer, 1000))
        model.compile(keras.optimizers.SGD(0.1, global_clipnorm=clip), "mse")
        model.fit(X, Y, batch_size=8, verbose=0)
        return numpy(first.kernel)

    start = numpy(dense_model(lambda layer: layer)[1].kernel)
    free = trained(None)
    assert np.abs(free - start).max() > 1e-5
    assert_allclose(trained(50.0), free, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("built", [False, True])
def test_wrapping_keeps_the_function_and_stores_weights_divided(built):
    layer = keras.layers.Dense(3, bias_initializer="ones")
    if built:
        layer.build((None, 6))
        expected = numpy(layer(X))
    head = SetLearningRate(layer, 100)
    outputs = numpy(head(X))
    assert_allclose(numpy(head.layer.bias), np.full(3, 0.01), rtol=1e-6)
    assert_allclose(outputs, X @ (numpy(layer.kernel) * 100) + 1, rtol=1e-4, atol=1e-5)
    if built:
        assert_allclose(outputs, expected, rtol=1e-4, atol=1e-5)
    layer.trainable = False
    assert_array_equal(numpy(head(X)), outputs)


@keras.saving.register_keras_serializable(package="tests")
class Lazy(keras.Model):
    """A model that makes its weights in the first call, as Keras then does inside a symbolic one."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.head = SetLearningRate(keras.layers.Dense(3, bias_initializer="ones"), 100)

    def call(self, inputs):
        return self.head(inputs)


def test_weights_that_come_late_are_divided_too():
    model = Lazy()
    model.compile("sgd", "mse")
    model.fit(X, np.ones((8, 3)), epochs=0, verbose=0)
    outputs = model.predict(np.zeros_like(X), verbose=0)
    assert_allclose(outputs, np.ones((8, 3)), rtol=1e-6)
    assert_allclose(numpy(model.head.layer.bias), np.full(3, 0.01), rtol=1e-6)


@pytest.mark.once
def test_moving_averages_seeds_and_losses_are_as_without_the_wrapper(tmp_path):
    def model(k):
        wrap = (lambda layer: SetLearningRate(layer, k)) if k else (lambda layer: layer)
        inputs = keras.Input((6,))
        normal, drop = keras.layers.BatchNormalization(momentum=0.5), keras.layers.Dropout(0.5, seed=7)
        penal = keras.layers.ActivityRegularization(l2=0.1)
        outputs = wrap(penal)(wrap(drop)(wrap(normal)(inputs)))
        return keras.Model(inputs, outputs), normal, drop

    results = []
    for k in (None, 1):
        network, normal, drop = model(k)
        network.compile(keras.optimizers.SGD(0.1), "mse")
        history = network.fit(X, X, epochs=4, batch_size=8, shuffle=False, verbose=0).history["loss"]
        seed = numpy(drop.seed_generator.state) if hasattr(drop, "seed_generator") else 0  # Keras 2 has no such state
        results.append((history, numpy(normal.moving_mean), numpy(normal.gamma), seed))
    for plain, wrapped in zip(*results, strict=True):
        assert_allclose(wrapped, plain, rtol=1e-5, atol=1e-6)
    assert np.abs(results[1][1]).max() > 0 and len(set(results[1][0])) == 4
    wrapped = model(100)[0]
    wrapped.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert_allclose(loaded.predict(X, verbose=0), wrapped.predict(X, verbose=0), rtol=1e-6)


@pytest.mark.once
def test_masks_pass_through_and_reach_the_layer():
    words = np.array([[3, 4, 0, 0], [1, 2, 5, 6]])

    def last_states(wrap):
        set_seeds(1)
        inputs = keras.Input((None,), dtype="int32")
        x = wrap(keras.layers.Embedding(9, 4, mask_zero=True))(inputs)
        x = wrap(keras.layers.Dense(5))(x)
        return keras.Model(inputs, wrap(keras.layers.LSTM(3))(x)).predict(words, verbose=0)

    assert_allclose(last_states(lambda x: SetLearningRate(x, 10)), last_states(lambda x: x), rtol=1e-4, atol=1e-6)
    lstm = SetLearningRate(keras.layers.LSTM(3), 10)
    values = random.normal(size=(1, 4, 2)).astype("float32")
    masked = lstm(values, mask=np.array([[True, True, False, False]]))
    assert_allclose(numpy(masked), numpy(lstm(values[:, :2])), rtol=1e-5)


@pytest.mark.once
def test_a_loaded_model_with_a_wrapped_layer_trains_on_identically(tmp_path):
    model, _, head = dense_model(lambda layer: SetLearningRate(layer, 100))
    model.compile("adam", "mse")
    model.fit(X, Y, batch_size=4, verbose=0)
    head.trainable = False  # what is frozen was divided all the same
    model.save(tmp_path / "frozen.keras")
    frozen = keras.saving.load_model(tmp_path / "frozen.keras", compile=False)
    assert_allclose(frozen.predict(X, verbose=0), model.predict(X, verbose=0), rtol=1e-6)
    head.trainable = True
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert isinstance(loaded.layers[-1], SetLearningRate) and loaded.layers[-1].multiplier == 100
    on, again = (m.fit(X, Y, epochs=3, batch_size=4, verbose=0, shuffle=False).history["loss"] for m in (model, loaded))
    assert_allclose(again, on, rtol=1e-6)


@pytest.mark.parametrize("policy", few("mixed_bfloat16", "mixed_float16"))
def test_under_mixed_precision_stored_weights_are_not_rounded(policy):
    keras.config.set_dtype_policy(policy)
    try:
        head = SetLearningRate(keras.layers.Dense(3, kernel_initializer=keras.initializers.Constant(1e-3)), 1e6)
        inputs = keras.Input((6,))
        model = keras.Model(inputs, head(keras.layers.Dense(6, kernel_initializer="identity")(inputs)))
        assert model.output.dtype == policy[6:]
        outputs = model.predict(np.ones((2, 6), "float32"), verbose=0).astype("float32")
        assert_allclose(outputs, np.full((2, 3), 6e-3), rtol=1e-2)  # 1e-9 is 0 in float16
    finally:
        keras.config.set_dtype_policy("float32")


def test_a_wrapped_composite_layer_divides_all_its_weights():
    block = keras.Sequential([keras.Input((6,)), keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(2)])
    expected = numpy(block(X))
    weights = [numpy(w) for w in block.weights]
    wrapped = SetLearningRate(block, 10)
    assert_allclose(numpy(wrapped(X)), expected, rtol=1e-5, atol=1e-6)
    for stored, weight in zip(wrapped.weights, weights, strict=True):
        assert_allclose(numpy(stored), weight / 10, rtol=1e-6)


@pytest.mark.once
def test_weights_of_another_multiplier_are_refused(tmp_path):
    def model(multiplier):
        return keras.Sequential([keras.Input((6,)), SetLearningRate(keras.layers.Dense(3, name="head"), multiplier)])

    saved = model(100)
    saved.save_weights(tmp_path / "a.weights.h5")
    same = model(100)
    same.load_weights(tmp_path / "a.weights.h5")
    assert_array_equal(numpy(same(X)), numpy(saved(X)))
    with pytest.raises(ValueError, match="its multiplier, 10: .* Received: weights saved with 100"):
        model(10).load_weights(tmp_path / "a.weights.h5")


@pytest.mark.once
def test_a_step_in_proportion_to_the_weight_leaves_no_effect_of_a_multiplier_unless_it_is_excluded():
    def moved(k, **options):
        set_seeds(0)
        model, layer = crf_model(lr_multiplier=k, transition_initializer=keras.initializers.Constant(3.0))
        model.compile(extend_with_layer_adaptation(keras.optimizers.Adam)(1e-3, **options), loss=layer.sparse_loss)
        model.train_on_batch(WORDS, TAGS)
        return np.abs(numpy(layer.trans) - 3).max()

    assert moved(100) == pytest.approx(moved(1), rel=1e-3)
    excluded = {"exclude_from_layer_adaptation": ["CRF"]}
    assert moved(100, **excluded) == pytest.approx(100 * moved(1, **excluded), rel=1e-3)


@pytest.mark.once
def test_a_layer_with_a_multiplier_of_its_own_takes_no_other():
    with pytest.raises(ValueError, match=r"`ConditionalRandomField\(lr_multiplier=100\)`"):
        SetLearningRate(ConditionalRandomField(), 100)

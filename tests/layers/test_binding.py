"""kcrf.layers: The CRF that a loss, a metric and a decoder use, and their errors for labels without a likelihood."""

import re

import numpy as np
import pytest
from changed_keras import changed_keras  # noqa: F401 (a fixture)
from conftest import few
from numpy.testing import assert_allclose, assert_array_equal

from kcrf.backend import backend_name, keras, ops
from kcrf.layers import ConditionalRandomField, ViterbiTags
from kcrf.tags import bmes

BACKENDS = ["torch", "tensorflow", "jax"]

WORDS = np.random.default_rng(1).integers(1, 20, (12, 6))
TAGS = np.random.default_rng(2).integers(0, 4, (12, 6))


def numpy(x):
    return ops.convert_to_numpy(x)


def crf_model(**arguments):
    inputs = keras.Input((None,), dtype="int32")
    x = keras.layers.Dense(4)(keras.layers.Embedding(20, 8, mask_zero=True)(inputs))
    layer = ConditionalRandomField(name="CRF", **arguments)
    return keras.Model(inputs, layer(x)), layer


def with_scores(model, seed):
    draw = np.random.default_rng(seed)
    model.set_weights([draw.normal(size=w.shape) for w in model.get_weights()])
    return model


# Two copies of one layer


def two_copies(way, tmp_path):
    """Two models with a copy each of one CRF and other weights."""
    first = with_scores(crf_model()[0], 1)
    if way == "clone":
        return first, with_scores(keras.models.clone_model(first), 2)
    first.save(tmp_path / "first.keras")
    with_scores(first, 2).save(tmp_path / "second.keras")
    return [keras.saving.load_model(tmp_path / f"{name}.keras") for name in ("first", "second")]


@pytest.mark.once
@pytest.mark.parametrize("way", few("clone", "checkpoints", rest="slow"))
def test_two_copies_of_a_layer_in_one_model_keep_their_scores(way, tmp_path):
    models = two_copies(way, tmp_path)
    models[1].name, models[1].get_layer("CRF").name = "second", "CRF_2"
    inputs = keras.Input((None,), dtype="int32")
    outputs = [model(inputs) for model in models]
    layers = [model.get_layer("CRF" if n == 0 else "CRF_2") for n, model in enumerate(models)]
    both = keras.Model(inputs, outputs)
    both.compile("sgd", [layer.sparse_loss for layer in layers], metrics=[[x.viterbi_accuracy] for x in layers])
    tagger = keras.Model(inputs, [ViterbiTags(layer)(y) for layer, y in zip(layers, outputs, strict=True)])
    expected = [
        numpy(layer.decode(model.predict(WORDS, verbose=0))) for layer, model in zip(layers, models, strict=True)
    ]
    assert (expected[0] != expected[1]).any()
    for name, model in (("both", both), ("tagger", tagger)):
        model.save(tmp_path / f"{name}.keras")
    loaded = keras.saving.load_model(tmp_path / "tagger.keras")
    for found, tags in zip(loaded.predict(WORDS, verbose=0), expected, strict=True):
        assert_array_equal(found, tags)
    trained = keras.saving.load_model(tmp_path / "both.keras")
    labels = [TAGS, expected[1]]
    losses = both.evaluate(WORDS, labels, verbose=0)
    assert losses[-1] == 1.0 and losses[-2] < 1.0
    assert_allclose(trained.evaluate(WORDS, labels, verbose=0), losses, rtol=1e-5)
    again = keras.models.clone_model(tagger)
    again.set_weights(tagger.get_weights())
    for found, tags in zip(again.predict(WORDS, verbose=0), expected, strict=True):
        assert_array_equal(found, tags)


@pytest.mark.once
@pytest.mark.usefixtures("changed_keras")
def test_a_loss_of_a_layer_outside_of_the_model_says_so():
    model, layer = crf_model()
    clone = keras.models.clone_model(model)
    clone.compile("sgd", loss=layer.sparse_loss)
    with pytest.raises(ValueError, match=r"must be that of the layer in the same model, `model.get_layer\('CRF'\)"):
        clone.fit(WORDS, TAGS, verbose=0)
    with pytest.raises(ValueError, match="ViterbiTags belongs to another layer"):
        ViterbiTags(layer)(clone.output)
    if backend_name() != "jax":  # where Keras loses the weights of a model when `fit` fails
        clone.compile("sgd", loss=clone.get_layer("CRF").sparse_loss)
        clone.fit(WORDS, TAGS, verbose=0)
    model.compile("sgd", loss=layer.sparse_loss)  # the first model is as it was
    model.fit(WORDS, TAGS, verbose=0)


@pytest.mark.once
@pytest.mark.parametrize("call", ["fit", "evaluate"])
def test_without_the_changes_for_bert4keras_keras_gets_the_loss_refused_too(call):
    model, layer = crf_model()
    clone = keras.models.clone_model(model)
    clone.compile("sgd", loss=layer.sparse_loss)
    with pytest.raises(ValueError, match=r"another layer .* `model.get_layer\('CRF'\).sparse_loss`"):
        getattr(clone, call)(WORDS, TAGS, verbose=0)


@pytest.mark.once
def test_two_layers_are_called_before_their_losses():
    (first, one), (second, other) = crf_model(), crf_model()
    here, there = first(WORDS), second(WORDS)
    losses = [numpy(one.sparse_loss(TAGS, here)), numpy(other.sparse_loss(TAGS, there))]
    expected = [numpy(one.sparse_loss(TAGS, numpy(here))), numpy(other.sparse_loss(TAGS, numpy(there)))]
    assert_allclose(losses, expected)  # of arrays nobody knows the layer
    with pytest.raises(ValueError, match="another layer"):
        one.sparse_loss(TAGS, there)


@pytest.mark.once
def test_a_loss_outlives_a_clone_of_its_layer(tmp_path):
    model, layer = crf_model()
    model.compile("sgd", loss=layer.sparse_loss)
    expected = model.evaluate(WORDS, TAGS, verbose=0)
    keras.models.clone_model(model)
    model.save(tmp_path / "model.keras")
    assert_allclose(keras.saving.load_model(tmp_path / "model.keras").evaluate(WORDS, TAGS, verbose=0), expected)


@pytest.mark.once
def test_each_loaded_model_has_the_loss_of_its_own_layer(tmp_path):
    model, layer = crf_model()
    model.compile("sgd", loss=layer.sparse_loss)
    expected, paths = [], [tmp_path / f"{seed}.keras" for seed in range(2)]
    for seed, path in enumerate(paths):
        with_scores(model, seed).save(path)
        expected.append(model.evaluate(WORDS, TAGS, verbose=0))
    loaded = [keras.saving.load_model(path) for path in paths]  # two copies of one layer at the same time
    assert_allclose([each.evaluate(WORDS, TAGS, verbose=0) for each in loaded], expected, rtol=1e-5)
    assert all(each.loss.belongs_to(each.get_layer("CRF")) for each in loaded)


# Labels that have no likelihood


def bad_labels(what):
    tags = np.array([bmes().repair(row) for row in TAGS]).astype("float32")
    tags[5, 2] = {"large": 7, "NaN": np.nan, "fraction": 1.5}.get(what, tags[5, 2])
    if what == "forbidden":
        tags[5] = [0, 0, 0, 0, 0, 1]  # ends inside a word
    return tags


MESSAGES = {
    "large": "Labels must be integers below 4.* label 7 in sentence 5, position 2 of the batch",
    "NaN": "Labels must be integers below 4.* label nan in sentence 5, position 2 of the batch",
    "fraction": "Labels must be integers below 4.* label 1.5 in sentence 5, position 2 of the batch",
    "forbidden": "Labels must be allowed by the constraints .* forbidden labels in sentence 5 of the batch",
}
IN_GRAPHS = {  # TensorFlow's Assert prints the text and the values one after another
    "large": r"integers below 4[\s\S]*7[\s\S]*5[\s\S]*2",
    "NaN": r"integers below 4[\s\S]*nan[\s\S]*5[\s\S]*2",
    "fraction": r"integers below 4[\s\S]*1.5[\s\S]*5[\s\S]*2",
    "forbidden": r"allowed by the constraints[\s\S]*5",
}


@pytest.fixture
def optimized_graphs():
    """TensorFlow rewrites graphs as it does for users: `make test` disables that elsewhere."""
    if backend_name() != "tensorflow":
        yield
        return
    import tensorflow as tf

    before = tf.config.optimizer.get_experimental_options()
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": False})
    yield
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": False, **before})


@pytest.mark.parametrize("what", few("forbidden", "large", "NaN", "fraction", everywhere=2))
@pytest.mark.parametrize("how", few("compiled", "eager"))
@pytest.mark.usefixtures("optimized_graphs")
def test_labels_without_a_likelihood_stop_the_first_batch(what, how):
    model, layer = crf_model(constraints=bmes())
    options = {"run_eagerly": True} if how == "eager" else {"jit_compile": backend_name() == "jax"}
    model.compile("sgd", loss=layer.sparse_loss, **options)
    in_graph = how == "compiled" and backend_name() == "tensorflow"
    with pytest.raises(Exception) as error:
        model.fit(WORDS, bad_labels(what), batch_size=12, shuffle=False, verbose=0)
    assert re.search((IN_GRAPHS if in_graph else MESSAGES)[what], str(error.value), re.DOTALL)
    if backend_name() == "torch" or how == "eager" and backend_name() == "tensorflow":
        assert isinstance(error.value, ValueError)
    if backend_name() != "jax":  # where Keras loses the weights of a model when `fit` fails
        model.fit(WORDS, bad_labels("none"), verbose=0)


@pytest.mark.once
def test_without_constraints_a_loss_that_is_too_large_is_that_of_training_that_diverged():
    emissions = np.full((2, 3, 4), [0.0, 0.0, 0.0, 3e9], "float32")
    free, bound = ConditionalRandomField(), ConditionalRandomField(constraints=bmes())
    for layer in (free, bound):
        layer.build((None, None, 4))
    losses = numpy(free.sparse_loss(np.zeros((2, 3), int), emissions, sample_weight=None))
    assert np.isnan(losses).all()  # not an error on labels, which are all allowed: Keras shows a loss of NaN
    with pytest.raises(Exception, match="(?s)allowed by the constraints"):
        bound.sparse_loss(np.array([[0, 0, 1]]), np.zeros((1, 3, 4), "float32"), sample_weight=None)


@pytest.mark.once
@pytest.mark.parametrize("label", [2.0**31, 2.0**32 + 1, np.inf])
def test_labels_beyond_int32_are_no_other_tags(label):
    model, layer = crf_model()
    tags = TAGS.astype("float64" if label == np.inf else "int64")
    tags[5, 2] = label
    with pytest.raises(ValueError, match="integers below 4, .* in sentence 5, position 2"):
        layer.sparse_loss(
            ops.convert_to_tensor(tags.astype("float32") if backend_name() == "jax" else tags), model(WORDS)
        )
    tags[5, 2] = -(2**32) + 1
    expected = numpy(layer.sparse_loss(np.where(tags < 0, -1, tags), model(WORDS)))
    found = layer.sparse_loss(ops.convert_to_tensor(tags, "float32" if backend_name() == "jax" else None), model(WORDS))
    assert_array_equal(numpy(found), expected)


@pytest.mark.once
def test_labels_are_not_rounded_when_keras_computes_in_bfloat16():
    layer, before = ConditionalRandomField(), keras.config.floatx()
    layer.build((None, None, 302))
    emissions, tags = np.zeros((2, 3, 302), "float32"), np.array([[257, 259, 301], [300, 299, 298]])
    emissions[:, :, 257] = 5.0
    expected = numpy(layer.sparse_loss(tags, emissions)).mean()
    try:
        keras.config.set_floatx("bfloat16")
        found = numpy(layer.sparse_loss(tags, emissions, sample_weight=None))  # as Keras calls it
    finally:
        keras.config.set_floatx(before)
    assert_allclose(found, expected, rtol=1e-6)


# Weights that JAX traces


@pytest.mark.skipif(backend_name() != "jax", reason="only JAX gives weights as arguments")
def test_a_loop_of_jax_trains_the_transitions_or_says_how():
    import jax

    model, layer = crf_model()
    weights, others = ([v.value for v in vs] for vs in (model.trainable_variables, model.non_trainable_variables))

    def loss(weights, with_scope):
        y_pred, _ = model.stateless_call(weights, others, WORDS, training=True)
        with keras.StatelessScope(zip(model.trainable_variables, weights) if with_scope else []):
            return layer.sparse_loss(TAGS, y_pred).mean()

    *_, slope = jax.jit(jax.grad(lambda weights: loss(weights, True)))(weights)
    known, steps = np.zeros((4, 4)), 1e-2
    for place in np.ndindex(4, 4):  # central differences
        change = np.zeros((4, 4), "float32")
        change[place] = steps
        ends = [loss([*weights[:-1], weights[-1] + sign * change], True) for sign in (1, -1)]
        known[place] = (ends[0] - ends[1]) / (2 * steps)
    assert_allclose(slope, known, atol=2e-3)
    with pytest.raises(ValueError, match="needs the same weights: compute it within `with keras.StatelessScope"):
        jax.grad(lambda weights: loss(weights, False))(weights)
    with pytest.raises(ValueError, match="needs the same weights"):
        jax.jit(lambda weights: layer.decode(model.stateless_call(weights, others, WORDS)[0]))(weights)
    emissions = model(WORDS)  # without a scope the weights of the layer are those that count
    at_emissions = jax.jit(lambda emissions: layer.sparse_loss(TAGS, emissions).mean())(emissions)
    assert_allclose(at_emissions, numpy(layer.sparse_loss(TAGS, emissions)).mean(), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.skipif(backend_name() != "tensorflow", reason="XLA elsewhere raises")
def test_under_xla_on_tensorflow_their_loss_is_nan_and_they_teach_nothing():
    model, layer = crf_model(constraints=bmes())
    model.compile("sgd", loss=layer.sparse_loss, jit_compile=True)
    for what in MESSAGES:
        assert np.isnan(model.fit(WORDS, bad_labels(what), batch_size=12, verbose=0).history["loss"]).all(), what
        assert all(np.isfinite(w).all() for w in model.get_weights()), what
    assert np.isfinite(model.evaluate(WORDS, bad_labels("none"), verbose=0))


@pytest.mark.once
def test_masked_labels_may_be_anything_and_the_probability_of_forbidden_ones_is_0():
    model, layer = crf_model(constraints=bmes())
    words, tags = WORDS.copy(), bad_labels("large")
    words[5, 2:] = 0
    tags[5, :2] = [1, 3]
    model.compile("sgd", loss=layer.sparse_loss)
    model.fit(words, tags, verbose=0)
    y_pred = model.predict(words, verbose=0)
    tags[5, :2] = [1, 1]
    assert np.exp(-numpy(layer.sparse_loss(tags, y_pred))[5]) == 0
    with pytest.raises(ValueError, match="label 9 in sentence 0, position 1"):
        layer.sparse_loss(np.where(np.arange(6) == 1, 9, tags), y_pred)


@pytest.mark.once
@pytest.mark.parametrize("how", ["smoothed", "two tags", "NaN"])
def test_labels_that_are_not_one_hot_are_refused_and_masked_ones_are_not_read(how):
    model, layer = crf_model()
    labels = np.eye(4, dtype="float32")[TAGS]
    expected = numpy(layer.dense_loss(labels, model.predict(WORDS, verbose=0)))
    words = np.where(np.arange(6) < 4, WORDS, 0)
    changed = labels.copy()
    changed[5, 4] = {"smoothed": changed[5, 4] * 0.9 + 0.025, "two tags": [1, 1, 0, 0], "NaN": np.nan}[how]
    with pytest.raises(ValueError, match="one tag at most.* Received: more than label .* in sentence 5, position 4"):
        layer.dense_loss(changed, model.predict(WORDS, verbose=0))
    y_pred = model.predict(words, verbose=0)
    assert_allclose(numpy(layer.dense_loss(changed, y_pred)), numpy(layer.dense_loss(labels, y_pred)))
    unknown = np.where(np.arange(6)[:, None] == 4, -1, labels)  # a row without a 1
    assert (numpy(layer.dense_loss(unknown, model.predict(WORDS, verbose=0))) <= expected + 1e-4).all()


# Other mistakes


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda layer: layer.loss, AttributeError, "has no 'loss': use `sparse_loss`"),
        (lambda layer: layer.loss_function, AttributeError, "use `sparse_loss`"),
        (lambda layer: layer.accuracy, AttributeError, "use `sparse_accuracy`"),
        (lambda layer: layer.viterbi_acc, AttributeError, "use `viterbi_accuracy`"),
        (lambda layer: layer.nothing, AttributeError, "no attribute 'nothing'"),
        (lambda layer: ConditionalRandomField().decode(np.zeros((1, 2, 4))), ValueError, "call it, or its model, once"),
        (
            lambda layer: layer.sparse_loss(TAGS[:, :5], np.zeros((12, 6, 4))),
            ValueError,
            "6 positions. Received: labels",
        ),
        (lambda layer: layer.sparse_loss([["b", "e"]], np.zeros((1, 2, 4))), ValueError, "an array of numbers"),
        (lambda layer: layer.sparse_loss([[1, 2], [3]], np.zeros((2, 2, 4))), ValueError, "an array of numbers"),
        (lambda layer: ConditionalRandomField(units=5), TypeError, r"no argument `units`: put `keras.layers.Dense\("),
        (lambda layer: ConditionalRandomField(sparse_target=True), TypeError, "compile `loss=layer.sparse_loss`"),
        (lambda layer: ConditionalRandomField(nothing=True), (TypeError, ValueError), "nothing"),
        (lambda layer: layer.dense_loss(np.eye(5)[TAGS], np.zeros((12, 6, 4))), ValueError, "with 4 tags"),
    ],
)
def test_mistakes_get_a_sentence(make, error, message):
    _, layer = crf_model()
    with pytest.raises(error, match=message):
        make(layer)


def test_a_layer_as_the_loss_is_refused():
    model, layer = crf_model()
    with pytest.raises((ValueError, TypeError, AttributeError), match="sparse_loss"):
        model.compile("sgd", loss=layer)
        model.fit(WORDS, TAGS, verbose=0)


def test_labels_of_another_length_get_a_sentence_in_fit():
    model, layer = crf_model()
    model.compile("sgd", loss=layer.sparse_loss, run_eagerly=True)
    with pytest.raises(ValueError, match="Labels must be as long as the outputs of the layer, 6 positions"):
        model.fit(WORDS, TAGS[:, :5], verbose=0)

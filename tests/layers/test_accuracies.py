"""Tests of kcrf.layers.

The accuracies of a CRF as metrics: tokens right of tokens counted, over batches of any size, empty ones too.
"""

import numpy as np
import pytest
from conftest import few
from numpy.testing import assert_allclose

from kcrf.backend import backend_name, keras, ops
from kcrf.layers import ConditionalRandomField

BACKENDS = ["torch", "tensorflow", "jax"]
WORDS = np.random.default_rng(1).integers(0, 20, (33, 6))
WORDS[:, 0] = np.maximum(WORDS[:, 0], 1)
TAGS = np.random.default_rng(2).integers(-1, 4, (33, 6))
METRICS = few("sparse_accuracy", "viterbi_accuracy", "dense_accuracy")


def model_and_layer():
    inputs = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(20, 4, mask_zero=True)(inputs)
    layer = ConditionalRandomField(lr_multiplier=10, name="CRF")
    return keras.Model(inputs, layer(keras.layers.Dense(4)(x))), layer


def labels_for(name, tags):
    return np.eye(5, dtype="float32")[tags][:, :, :4] if name.startswith("dense") else tags


def expected(model, layer, name, tags, weights=None):
    """The weighted fraction of right tokens, counted by NumPy."""
    y_pred = model.predict(WORDS, verbose=0)
    predicted = ops.convert_to_numpy(layer.decode(y_pred)) if name.startswith("viterbi") else y_pred.argmax(axis=-1)
    counted = (WORDS > 0) & (tags >= 0)
    weights = np.ones(tags.shape) if weights is None else np.broadcast_to(weights, tags.shape)
    return ((predicted == tags) & counted * weights.astype(bool))[counted].dot(weights[counted]) / weights[
        counted
    ].sum()


@pytest.mark.parametrize("name", METRICS)
def test_batches_of_different_sizes_count_by_their_tokens(name):
    model, layer = model_and_layer()
    tags = np.maximum(model.predict(WORDS, verbose=0).argmax(axis=-1), 0)
    tags[-1] = (tags[-1] + 1) % 4  # all wrong, in a batch of its own
    loss = layer.dense_loss if name.startswith("dense") else layer.sparse_loss
    model.compile("sgd", loss, metrics=[getattr(layer, name)])
    found = model.evaluate(WORDS, labels_for(name, tags), batch_size=32, verbose=0)[1]
    assert_allclose(found, expected(model, layer, name, tags), rtol=1e-5)


@pytest.mark.parametrize("name", METRICS)
def test_callbacks_know_that_more_is_better(name):
    model, layer = model_and_layer()
    loss = layer.dense_loss if name.startswith("dense") else layer.sparse_loss
    model.compile("sgd", loss, metrics=[getattr(layer, name)])
    x, y = WORDS[:8], labels_for(name, TAGS[:8])
    stop = keras.callbacks.EarlyStopping(f"val_{name}", patience=0, restore_best_weights=True)
    history = model.fit(x, y, epochs=1, verbose=0, validation_data=(x, y), callbacks=[stop])
    assert stop.best == history.history[f"val_{name}"][0] and stop.monitor_op(1.0, 0.5)


@pytest.mark.skipif(backend_name() != "tensorflow", reason="tf.data is TensorFlow's")
@pytest.mark.filterwarnings("ignore:Your input ran out of data")  # of Keras, about the empty step
@pytest.mark.parametrize("name", few("sparse_accuracy", "viterbi_accuracy"))
@pytest.mark.parametrize("batches", [1, 4])
def test_a_tf_data_of_unknown_length_counts_no_empty_step(name, batches):
    import tensorflow as tf

    size = -(-len(WORDS) // batches)
    data = tf.data.Dataset.from_tensor_slices((WORDS, TAGS)).batch(size).filter(lambda x, y: True)
    model, layer = model_and_layer()
    model.compile(keras.optimizers.SGD(0.0), layer.sparse_loss, metrics=[getattr(layer, name)])
    share = expected(model, layer, name, TAGS)
    history = model.fit(data, validation_data=data, shuffle=False, verbose=0).history
    assert_allclose([history[name][0], history[f"val_{name}"][0]], [share] * 2, rtol=1e-5)
    loss = model.evaluate(WORDS, TAGS, batch_size=size, verbose=0)[0]
    assert_allclose(model.evaluate(data, verbose=0), [loss, share], rtol=1e-5)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("by", few("sentence", "token"))
def test_weighted_metrics_weigh_tokens(name, by):
    model, layer = model_and_layer()
    weights = np.random.default_rng(3).uniform(0, 2, (33, 6 if by == "token" else 1)).astype("float32")
    share = expected(model, layer, name, TAGS, weights)
    metric = getattr(layer, name)
    for rows in np.array_split(np.arange(33), 3):
        labels, y_pred = labels_for(name, TAGS)[rows], model.predict(WORDS[rows], verbose=0)
        metric.update_state(labels, y_pred, weights[rows] if by == "token" else weights[rows, 0])
    assert_allclose(float(metric.result()), share, rtol=1e-5)
    if by == "token":
        return  # Keras gives the loss the same weights, and a CRF has one loss for each sentence
    loss = layer.dense_loss if name.startswith("dense") else layer.sparse_loss
    model.compile("sgd", loss, weighted_metrics=[getattr(layer, name)])
    found = model.evaluate(WORDS, labels_for(name, TAGS), sample_weight=weights[:, 0], batch_size=8, verbose=0)
    assert_allclose(found[1], share, rtol=1e-5)


@pytest.mark.skipif(backend_name() == "jax", reason="JAX compiles each shape by itself, which takes minutes here")
@pytest.mark.parametrize("name", few("sparse_accuracy", "viterbi_accuracy"))
def test_tags_and_weights_may_get_a_last_axis_after_a_call_without_one(name):
    """TensorFlow traces both calls as one of unknown rank."""
    model, layer = model_and_layer()
    weights = np.random.default_rng(3).uniform(0, 2, 33).astype("float32")
    model.compile(keras.optimizers.SGD(0.0), layer.sparse_loss, weighted_metrics=[getattr(layer, name)])
    share = expected(model, layer, name, TAGS, weights[:, None])
    first = model.evaluate(WORDS, TAGS, sample_weight=weights, batch_size=33, verbose=0)
    assert_allclose(first[1], share, rtol=1e-5)
    for tags, weight in ((TAGS[..., None], weights[:, None]), (TAGS, weights[:, None]), (TAGS[..., None], weights)):
        assert_allclose(model.evaluate(WORDS, tags, sample_weight=weight, batch_size=33, verbose=0), first, rtol=1e-5)
    model.fit(WORDS, TAGS, sample_weight=weights, verbose=0)
    history = model.fit(WORDS, TAGS[..., None], sample_weight=weights[:, None], batch_size=33, verbose=0).history
    assert_allclose(history[name], [share], rtol=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Your input ran out of data")  # of Keras, about the empty step
@pytest.mark.skipif(backend_name() != "tensorflow", reason="TensorFlow alone has tensors of unknown rank")
def test_labels_of_unknown_rank_must_have_the_size_of_the_outputs():
    import tensorflow as tf

    def data(tags):
        parts = WORDS, tags, np.ones(33, "float32")
        kinds = tf.TensorSpec((None, None), tf.int32), tf.TensorSpec(None, tf.float32), tf.TensorSpec(None, tf.float32)
        return tf.data.Dataset.from_generator(lambda: iter([parts]), output_signature=kinds)

    for name, tags in (("sparse", TAGS), ("dense", labels_for("dense", TAGS))):
        model, layer = model_and_layer()
        loss, metric = getattr(layer, f"{name}_loss"), getattr(layer, f"{name}_accuracy")
        model.compile("sgd", loss, weighted_metrics=[metric])
        known = model.evaluate(WORDS, tags, batch_size=33, verbose=0)
        assert_allclose(model.evaluate(data(tags), verbose=0), known, rtol=1e-5)
        with pytest.raises(Exception, match="[Rr]eshape|Incompatible"):
            model.evaluate(data(tags[:, :-1]), verbose=0)


def test_called_with_two_arguments_it_is_the_accuracy_of_this_batch_in_compiled_functions_too():
    model, layer = model_and_layer()

    def accuracy(y_true, y_pred):
        return layer.sparse_accuracy(y_true, y_pred)

    model.compile("sgd", layer.sparse_loss, metrics=[accuracy])
    share = expected(model, layer, "sparse_accuracy", TAGS)
    for _ in range(2):
        assert_allclose(model.evaluate(WORDS, TAGS, batch_size=33, verbose=0)[1], share, rtol=1e-5)
    y_pred = model.predict(WORDS, verbose=0)
    for _ in range(2):
        assert_allclose(float(layer.sparse_accuracy(TAGS, y_pred)), share, rtol=1e-5)
    half = float(layer.sparse_accuracy(TAGS[:5], y_pred[:5]))
    right, counted = (y_pred.argmax(-1) == TAGS)[:5], ((WORDS > 0) & (TAGS >= 0))[:5]
    assert_allclose(half, right[counted].mean(), rtol=1e-5)


@pytest.mark.parametrize("batch, time", few((0, 6), (3, 0), (0, 0)))
def test_batches_without_sentences_or_positions_have_losses_and_metrics(batch, time):
    layer = ConditionalRandomField()
    layer.build((None, None, 4))
    y_pred, tags = np.zeros((batch, time, 4), "float32"), np.zeros((batch, time), "int32")
    for labels, kind in ((tags, "sparse"), (np.eye(4)[tags], "dense")):
        loss = getattr(layer, f"{kind}_loss")
        assert ops.convert_to_numpy(loss(labels, y_pred)).tolist() == [0.0] * batch
        assert ops.convert_to_numpy(loss(labels, y_pred, None)) == 0.0
        assert float(getattr(layer, f"{kind}_accuracy")(labels, y_pred)) == 0.0
    assert float(layer.viterbi_accuracy(tags, y_pred)) == 0.0


@pytest.mark.skipif(backend_name() != "tensorflow", reason="other backends compile for each shape, or not at all")
def test_a_graph_of_unknown_sizes_takes_empty_batches():
    import tensorflow as tf

    layer = ConditionalRandomField(use_boundary=True)
    layer.build((None, None, 4))
    loss = layer.sparse_loss

    @tf.function(input_signature=[tf.TensorSpec((None, None), "int32"), tf.TensorSpec((None, None, 4))])
    def values(tags, y_pred):
        return loss(tags, y_pred), layer.sparse_accuracy(tags, y_pred)

    for batch, time in ((0, 6), (3, 0), (0, 0), (2, 5)):
        losses, share = values(np.zeros((batch, time), "int32"), np.zeros((batch, time, 4), "float32"))
        assert losses.shape == (batch,) and (losses.numpy() > 0).all() == (batch * time > 0 or batch == 0)
        assert share == (1.0 if batch * time else 0.0)


@pytest.mark.skipif(backend_name() == "jax", reason="JAX itself makes 64-bit labels 32 bits wide")
@pytest.mark.parametrize("name", ["sparse_accuracy", "viterbi_accuracy"])
def test_a_label_that_is_no_tag_is_counted_as_wrong(name):
    model, layer = model_and_layer()
    y_pred = model(WORDS)
    predicted = layer.decode(y_pred) if name.startswith("viterbi") else ops.argmax(y_pred, axis=-1)
    tags = ops.convert_to_numpy(predicted).astype("int64")
    real = WORDS > 0
    tags[0] += 2**32  # the low 32 bits are those of the tag
    metric = getattr(layer, name)
    metric.update_state(tags, y_pred)
    assert_allclose(float(metric.result()), real[1:].sum() / real.sum(), rtol=1e-5)

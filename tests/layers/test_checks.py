"""Tests of kcrf.layers.

Mistakes in building, compiling and fitting a model with a CRF, and correct use, which must not be reported.
"""

import numpy as np
import pytest
from changed_keras import changed_keras  # noqa: F401 (a fixture)
from conftest import few

from kcrf.backend import keras, ops
from kcrf.bert4keras import restore_keras
from kcrf.layers import ConditionalRandomField, MaximumEntropyMarkovModel, SetLearningRate
from kcrf.models import build_transformer_model
from kcrf.monitor import CRFMonitor

BACKENDS = ["torch", "tensorflow", "jax"]
pytestmark = pytest.mark.usefixtures("changed_keras")

LENGTHS = np.array([6, 3, 5, 2, 6, 4, 1, 6])
REAL = np.arange(6) < LENGTHS[:, None]
WORDS = np.where(REAL, np.random.default_rng(1).integers(1, 20, REAL.shape), 0)
TAGS = np.where(REAL, np.random.default_rng(2).integers(0, 4, REAL.shape), -1)


def tagger(layer, mask_zero=True, scores=None):
    inputs = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(20, 8, mask_zero=mask_zero)(inputs)
    return keras.Model(inputs, layer((scores or keras.layers.Dense(4))(x)))


def compiled(layer, loss=None, metrics=None, mask_zero=True):
    model = tagger(layer, mask_zero)
    model.compile("sgd", loss=loss or layer.sparse_loss, metrics=metrics)
    return model


# What cannot be meant


@pytest.mark.parametrize("how", ["fit", "train_on_batch"])
def test_class_weights_are_refused(how):
    model = compiled(ConditionalRandomField())
    arguments = {} if how == "train_on_batch" else {"verbose": 0}
    with pytest.raises(
        ValueError, match=r"`class_weight` has no meaning for a CRF.* Received: class_weight={0: 1.0, 1"
    ):
        getattr(model, how)(WORDS, TAGS, class_weight={0: 1.0, 1: 2.0, 2: 1.0, 3: 1.0}, **arguments)


@pytest.mark.once
def test_weights_of_sentences_are_taken():
    compiled(ConditionalRandomField()).fit(WORDS, TAGS, sample_weight=LENGTHS.astype("float32"), verbose=0)


PLAIN = [
    "sparse_categorical_crossentropy",
    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    ["sparse_categorical_crossentropy"],
]


@pytest.mark.parametrize("loss", few(*PLAIN))
@pytest.mark.parametrize("head", few(ConditionalRandomField, MaximumEntropyMarkovModel))
def test_a_loss_of_keras_on_the_outputs_of_a_crf_is_refused(loss, head):
    model = compiled(head(name="CRF"), loss)
    with pytest.raises(
        ValueError, match=r"the CRF `CRF` needs a loss of this layer.*loss=model.get_layer\(.CRF.\).sparse_loss"
    ):
        model.fit(WORDS, np.maximum(TAGS, 0), verbose=0)


@pytest.mark.once
def test_other_losses_beside_or_in_place_of_that_of_the_layer_are_taken():
    frozen = ConditionalRandomField(trainable=False)
    frozen_model = compiled(frozen, keras.losses.SparseCategoricalCrossentropy(True), mask_zero=False)
    frozen_model.fit(np.maximum(WORDS, 1), np.maximum(TAGS, 0), verbose=0)  # emissions first, transitions later

    layer = ConditionalRandomField()
    compiled(layer, lambda y_true, y_pred: ops.mean(layer.sparse_loss(y_true, y_pred))).fit(WORDS, TAGS, verbose=0)

    layer = ConditionalRandomField()
    inputs = keras.Input((6,), dtype="int32")
    x = keras.layers.Embedding(20, 8)(inputs)
    model = keras.Model(inputs, [layer(keras.layers.Dense(4)(x)), keras.layers.Dense(1, name="length")(x[:, 0])])
    model.compile("sgd", [layer.sparse_loss, "mse"], metrics=[[layer.sparse_accuracy], ["mae"]])
    model.fit(np.maximum(WORDS, 1), [np.maximum(TAGS, 0), LENGTHS.astype("float32")], verbose=0)
    model.compile("sgd", ["mse", "mse"])
    with pytest.raises(ValueError, match="needs a loss of this layer"):
        model.fit(np.maximum(WORDS, 1), [np.zeros((8, 6, 4)), LENGTHS.astype("float32")], verbose=0)


# What is probably a mistake


@pytest.mark.filterwarnings("ignore:Gradients do not exist")  # Keras says this on torch and TensorFlow
@pytest.mark.parametrize("mask_zero", [False, True])
@pytest.mark.parametrize("loss", few("sparse_categorical_crossentropy", PLAIN[1]))
def test_a_validation_says_once_that_a_loss_of_keras_trains_no_transitions(loss, mask_zero):
    restore_keras()
    layer, words, tags = ConditionalRandomField(name="CRF"), np.maximum(WORDS, 1), np.maximum(TAGS, 0)
    model = compiled(layer, loss, mask_zero=mask_zero)
    line = "`CRF` was called in training, but no loss used its transitions.*Use `loss=layer.sparse_loss`"
    with pytest.warns(UserWarning, match=line) as said:
        model.fit(words, tags, validation_data=(words, tags), verbose=0)
    assert sum("sparse_loss" in str(one.message) for one in said) == 1
    model.fit(words[:, :5], tags[:, :5], verbose=0)
    model.predict(words, verbose=0)
    model.compile("sgd", loss=model.get_layer("CRF").sparse_loss)
    model.fit(words, tags, verbose=0)


@pytest.mark.filterwarnings("ignore:Gradients do not exist")
@pytest.mark.parametrize("head", few(ConditionalRandomField, MaximumEntropyMarkovModel))
def test_transitions_that_no_loss_uses_are_named_in_a_model_whose_outputs_keras_does_not_know(head):
    class Outer(keras.Model):
        def __init__(self):
            super().__init__()
            self.inner = tagger(head(name="CRF"), mask_zero=False)

        def call(self, inputs, training=False):
            return self.inner(inputs, training=training)

    restore_keras()
    model = Outer()
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(True))
    words, tags = np.maximum(WORDS, 1), np.maximum(TAGS, 0)
    with pytest.warns(UserWarning, match="`CRF` was called in training, but no loss used its transitions.*sparse_loss"):
        model.fit(words, tags, verbose=0)
        model.predict(words, verbose=0)
    model.predict(words[:, :5], verbose=0)  # says it once


@pytest.mark.once
def test_used_or_frozen_transitions_are_not_named():
    restore_keras()
    frozen = ConditionalRandomField(trainable=False)
    words, tags = np.maximum(WORDS, 1), np.maximum(TAGS, 0)
    model = compiled(frozen, keras.losses.SparseCategoricalCrossentropy(True), mask_zero=False)
    model.fit(words, tags, validation_data=(words, tags), verbose=0)
    for layer in (ConditionalRandomField(), MaximumEntropyMarkovModel(hidden_dim=2)):
        compiled(layer, lambda y_true, y_pred, layer=layer: layer.sparse_loss(y_true, y_pred)).fit(
            WORDS, TAGS, validation_data=(WORDS, TAGS), verbose=0
        )


@pytest.mark.once
@pytest.mark.parametrize("metric", few("accuracy", keras.metrics.SparseCategoricalAccuracy()))
def test_an_accuracy_that_counts_padding_is_named(metric):
    layer = ConditionalRandomField(name="CRF")
    model = compiled(layer, metrics=[layer.sparse_accuracy, metric])
    with pytest.warns(UserWarning, match=r"metric .*ccuracy.* counts the masked positions of `CRF`.*sparse_accuracy"):
        model.fit(WORDS, TAGS, verbose=0)
    model.fit(WORDS, TAGS, verbose=0)  # says it once
    compiled(ConditionalRandomField(), metrics=[metric], mask_zero=False).fit(
        np.maximum(WORDS, 1), np.maximum(TAGS, 0), verbose=0
    )


def softmaxes():
    inputs = keras.layers.Dense(4)
    return {
        "activation": keras.layers.Dense(4, activation="softmax"),
        "wrapped": keras.layers.TimeDistributed(keras.layers.Dense(4, activation="softmax")),
        "faster": SetLearningRate(keras.layers.Dense(4, activation="softmax"), 10),
        "layer": lambda x: keras.layers.Softmax()(inputs(x)),
        "activation layer": lambda x: keras.layers.Activation("softmax")(inputs(x)),
        "operation": lambda x: keras.activations.softmax(inputs(x)),
    }


@pytest.mark.once
@pytest.mark.parametrize("way", softmaxes())
def test_a_softmax_before_the_crf_is_named(way, tmp_path):
    with pytest.warns(UserWarning, match=r"`CRF` needs scores of any size.* Received: the output of the softmax `"):
        model = tagger(ConditionalRandomField(name="CRF"), scores=softmaxes()[way])
    model.save(tmp_path / "model.keras")
    keras.saving.load_model(tmp_path / "model.keras")  # says it when a model is built, not when it is loaded


@pytest.mark.once
@pytest.mark.parametrize("recurrent", [lambda: keras.layers.LSTM(8, return_sequences=True), "bidirectional"])
def test_a_recurrent_layer_in_place_of_scores_is_named(recurrent):
    layer = keras.layers.Bidirectional(keras.layers.GRU(4, return_sequences=True))
    with pytest.warns(UserWarning, match=r"`CRF` needs one score for each tag: put .*Dense.* Received: .* 8 numbers"):
        tagger(ConditionalRandomField(name="CRF"), scores=layer if recurrent == "bidirectional" else recurrent())


@pytest.mark.once
def test_a_number_of_tags_in_place_of_the_multiplier_is_named(tmp_path):
    with pytest.warns(UserWarning, match=r"`CRF` takes no number of tags.* Received: lr_multiplier=4 for 4 tags"):
        model = tagger(ConditionalRandomField(4, name="CRF"))
    model.save(tmp_path / "model.keras")
    keras.saving.load_model(tmp_path / "model.keras")
    tagger(ConditionalRandomField(4.0))
    tagger(ConditionalRandomField(10), scores=keras.layers.Dense(10))


def test_a_mask_that_a_concatenation_loses_is_named():
    words, features = keras.Input((6,), dtype="int32"), keras.Input((6,), dtype="int32")
    masked = keras.layers.Embedding(20, 4, mask_zero=True)(words)
    layer = ConditionalRandomField(name="CRF")

    def concatenated(mask_zero, mask=None):
        x = keras.layers.Embedding(20, 4, mask_zero=mask_zero)(features)
        x = keras.layers.LSTM(4, return_sequences=True)(keras.layers.Concatenate()([masked, x]))
        return keras.Model([words, features], layer(keras.layers.Dense(4)(x), mask=mask))

    with pytest.warns(UserWarning, match=r"The mask of `CRF` is True everywhere.*keras.ops.not_equal\(words, 0\)"):
        model = concatenated(mask_zero=False)
    assert np.isfinite(model.predict([WORDS, WORDS], verbose=0)).all()
    layer = ConditionalRandomField(name="CRF")  # of which nothing was said yet
    bert = build_transformer_model(
        vocab_size=20, hidden_size=4, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )  # whose mask has a one for the first token
    keras.Model(bert.input, ConditionalRandomField()(keras.layers.Dense(4)(bert.output)))
    for model in (concatenated(mask_zero=True), concatenated(False, keras.ops.not_equal(words, 0))):
        real = np.isfinite(model.predict([WORDS, WORDS], verbose=0)).all(axis=-1)
        np.testing.assert_array_equal(real, REAL)


@pytest.mark.once
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_a_hidden_layer_in_place_of_scores_is_named(activation):
    hidden = keras.layers.Dense(50, activation=activation)
    for scores in (hidden, keras.layers.TimeDistributed(hidden)):  # keras-contrib's CRF(units) has a kernel
        expected = rf"one score .* Received: the output of `{scores.name}` with the activation {activation}, 50"
        with pytest.warns(UserWarning, match=expected):
            tagger(ConditionalRandomField(name="CRF"), scores=scores)


@pytest.mark.once
def test_other_activations_before_the_crf_are_taken():
    for activation in (None, "linear", "log_softmax"):
        if activation != "log_softmax" or hasattr(keras.activations, activation):
            tagger(ConditionalRandomField(), scores=keras.layers.Dense(4, activation=activation))
    tagger(MaximumEntropyMarkovModel(), scores=SetLearningRate(keras.layers.Dense(4), 10))


@pytest.mark.parametrize("what", few("zeros", "zeros before", "labels"))
def test_a_forgotten_mask_is_named(what):
    words, tags = (WORDS, np.maximum(TAGS, 0)) if what != "labels" else (np.maximum(WORDS, 1), TAGS)
    if what == "zeros before":
        words, tags = words[:, ::-1], tags[:, ::-1]
    model = compiled(ConditionalRandomField(name="CRF"), mask_zero=False)
    with pytest.warns(UserWarning, match=r"`CRF` has no mask, .*mask_zero=True`.* Received: (inputs|tags)"):
        model.fit(words.copy(), tags.copy(), verbose=0)
    model.fit(words.copy(), tags.copy(), verbose=0)  # says it once


@pytest.mark.once
def test_zeros_and_unknown_tags_that_are_no_padding_are_taken():
    random = np.random.default_rng(3)
    words, tags = random.integers(0, 3, (64, 6)), random.integers(-1, 4, (64, 6))
    segments = (np.arange(6) >= LENGTHS[random.integers(0, 8, 64), None]).astype("int32")
    ended = np.where(np.arange(6) == 5, 0, np.maximum(words, 1))  # every sentence ends with the token 0
    for x, y in ((words, tags), (segments, tags), (1 - segments, tags), (ended, tags)):
        compiled(ConditionalRandomField(), mask_zero=False).fit(x, y, verbose=0)


@pytest.mark.once
def test_nothing_is_said_outside_of_training(tmp_path):
    layer = ConditionalRandomField()
    model = compiled(layer, metrics=["accuracy"], mask_zero=False)
    model.evaluate(WORDS, np.maximum(TAGS, 0), verbose=0)
    model.predict(WORDS, verbose=0)
    model.save(tmp_path / "model.keras")
    keras.saving.load_model(tmp_path / "model.keras").predict(WORDS, verbose=0)
    keras.models.clone_model(model)
    layer(np.zeros((1, 2, 4), "float32"), training=True)


@pytest.mark.once
def test_the_monitor_checks_the_loss_without_changed_classes_of_keras():
    restore_keras()
    layer = ConditionalRandomField(name="CRF")
    monitor = CRFMonitor(layer, (WORDS, np.maximum(TAGS, 0)), verbose=0)
    model = compiled(layer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    with pytest.raises(ValueError, match="the CRF `CRF` needs a loss of this layer"):
        model.fit(WORDS, np.maximum(TAGS, 0), verbose=0, callbacks=[monitor])


def encoder_of_another_library():
    """Returns the inputs and the hidden states of a model that takes a padding mask and returns no Keras mask."""
    inputs = {
        name: keras.Input((6,), dtype="int32", name=name) for name in ("token_ids", "segment_ids", "padding_mask")
    }
    hidden = keras.layers.Embedding(20, 4)(inputs["token_ids"]) + keras.layers.Embedding(2, 4)(inputs["segment_ids"])
    hidden = hidden * keras.ops.cast(inputs["padding_mask"], "float32")[:, :, None]
    return keras.Model(inputs, hidden)


@pytest.mark.parametrize("is_nested", [False, True])
def test_a_padding_mask_that_the_crf_does_not_get_is_named_once(is_nested):
    encoder, layer = encoder_of_another_library(), ConditionalRandomField(name="CRF")
    inputs, hidden = encoder.input, encoder.output
    if is_nested:
        inputs = {name: keras.Input((6,), dtype="int32", name=f"my_{name}") for name in inputs}
        hidden = encoder(inputs)
    scores = keras.layers.Dense(4)(hidden)
    with pytest.warns(UserWarning, match=r"`padding_mask`, an .*: `crf\(scores, mask=padding_mask\)`"):
        layer(scores)
    layer(scores)  # warns once
    ConditionalRandomField()(scores, mask=inputs["padding_mask"])  # warns of nothing


@pytest.mark.parametrize("unknown", [-1, -100])
def test_labels_that_look_padded_without_a_mask_are_named_once(unknown):
    restore_keras()  # `fit` as it is without kcrf.bert4keras
    layer = ConditionalRandomField(name="CRF")
    inputs = keras.Input((6, 3))
    model = keras.Model(inputs, layer(keras.layers.Dense(4)(inputs)))
    model.compile("sgd", loss=layer.sparse_loss)
    tags = np.where(REAL, 1, unknown)
    line = r"`crf\(scores, mask=keras.ops.not_equal\(ids, 0\)\)`. Received: tags that are negative at the end or"
    with pytest.warns(UserWarning, match=line) as said:
        model.fit(np.ones((8, 6, 3)), tags, epochs=2, verbose=0)
    assert sum("`CRF`" in str(one.message) for one in said) == 1


def test_unknown_labels_that_are_masked_or_no_padding_are_taken():
    restore_keras()
    words, tags = keras.Input((6,), dtype="int32"), np.where(REAL, 1, -1)
    inside = np.where(np.arange(6) == LENGTHS[:, None] - 1, -1, 1)  # unknown, but not at the ends alone
    for mask, labels in ((keras.ops.not_equal(words, 0), tags), (None, inside)):
        crf = ConditionalRandomField()
        scores = keras.layers.Dense(4)(keras.layers.Embedding(20, 4)(words))
        model = keras.Model(words, crf(scores, mask=mask))
        model.compile("sgd", loss=crf.sparse_loss)
        model.fit(WORDS, labels, batch_size=2, verbose=0)


def test_a_padding_mask_in_the_inputs_and_labels_that_look_padded_have_one_warning():
    restore_keras()
    encoder, layer = encoder_of_another_library(), ConditionalRandomField(name="CRF")
    with pytest.warns(UserWarning) as said:
        model = keras.Model(encoder.input, layer(keras.layers.Dense(4)(encoder.output)))
        model.compile("sgd", loss=layer.sparse_loss)
        inputs = {"token_ids": WORDS, "segment_ids": WORDS * 0, "padding_mask": REAL.astype("int32")}
        model.fit(inputs, TAGS, verbose=0)
    assert sum("`CRF`" in str(one.message) for one in said) == 1

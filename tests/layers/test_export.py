"""kcrf.layers: `model.export` of a tagger: files that have Viterbi tags and confidences for any batch and length."""

import numpy as np
import pytest
from conftest import few
from numpy.testing import assert_allclose, assert_array_equal
from seeds import set_seeds

from kcrf.backend import keras
from kcrf.layers import ConditionalRandomField, MaximumEntropyMarkovModel, SetLearningRate, ViterbiTags
from kcrf.tags import bmes

BACKENDS = ["tensorflow"]


LAYERS = {
    "crf": lambda: ConditionalRandomField(100, use_boundary=True, constraints=bmes()),
    "memm": lambda: MaximumEntropyMarkovModel(100, hidden_dim=3),
}


def tagger(layer):
    set_seeds(5)
    inputs = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(20, 8, mask_zero=True)(inputs)
    outputs = layer(SetLearningRate(keras.layers.Dense(4), 10)(x))
    return keras.Model(inputs, ViterbiTags(layer, confidences=True)(outputs))


@pytest.mark.parametrize("kind", few(*LAYERS, rest="slow"))
def test_a_saved_model_serves_other_batches_and_lengths_as_the_model_itself(tmp_path, kind):
    import tensorflow as tf

    layer = LAYERS[kind]()
    model = tagger(layer)
    layer.set_lr_multiplier(50)
    words = np.random.default_rng(0).integers(1, 20, (3, 6)).astype("int32")
    model.predict(words, verbose=0)
    model.export(str(tmp_path / "served"), verbose=False)
    served = tf.saved_model.load(str(tmp_path / "served"))
    for batch, length in ((3, 6), (1, 1), (5, 40), (2, 9)):
        words = np.random.default_rng(batch).integers(1, 20, (batch, length)).astype("int32")
        words[-1, length // 2 + 1 :] = 0
        tags, confidences = served.serve(words)
        expected, sure = model(words)
        assert_array_equal(tags.numpy(), expected.numpy())
        assert_allclose(confidences.numpy(), sure.numpy(), rtol=1e-5, atol=1e-6)
        assert ((tags.numpy() == -1) == (words == 0)).all() and ((confidences.numpy() > 0) == (words > 0)).all()


@pytest.mark.filterwarnings("ignore")  # of tf2onnx
def test_an_onnx_file_gives_what_the_model_itself_gives(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    model = tagger(LAYERS["crf"]())
    model.predict(np.ones((1, 2), "int32"), verbose=0)
    model.export(str(tmp_path / "tagger.onnx"), format="onnx", verbose=False)
    session = onnxruntime.InferenceSession(tmp_path / "tagger.onnx")
    (name,) = (x.name for x in session.get_inputs())
    for batch, length in ((3, 6), (1, 1), (5, 40)):
        words = np.random.default_rng(batch).integers(1, 20, (batch, length)).astype("int32")
        words[-1, length // 2 + 1 :] = 0
        tags, confidences = session.run(None, {name: words})
        expected = model.predict(words, verbose=0)
        assert_array_equal(tags, expected[0])
        assert_allclose(confidences, expected[1], rtol=1e-4, atol=1e-6)

"""Tests of kcrf.layers.

`predict` on batches of different lengths: TensorFlow returns a `RaggedTensor`, with the paths of its sentences.
"""

import numpy as np
import pytest

from kcrf.backend import keras
from kcrf.layers import ConditionalRandomField

BACKENDS = ["tensorflow"]
SENTENCES = [[1, 2], [3, 4, 5], [6], [7, 8, 9, 10]]


def test_ragged_outputs_are_decoded_as_sentence_by_sentence():
    import tensorflow as tf

    data = tf.data.Dataset.from_generator(lambda: iter(SENTENCES), output_signature=tf.TensorSpec((None,), "int32"))
    crf = ConditionalRandomField(transition_initializer=keras.initializers.RandomNormal(stddev=2))
    model = keras.Sequential([keras.layers.Embedding(20, 16, mask_zero=True), keras.layers.Dense(3), crf])
    ragged = model.predict(data.padded_batch(2), steps=2, verbose=0)
    assert isinstance(ragged, tf.RaggedTensor)
    paths, marginals = crf.decode(ragged).numpy(), crf.marginals(ragged).numpy()
    for sentence, path, rows in zip(SENTENCES, paths, marginals, strict=True):
        alone = model.predict_on_batch(np.array([sentence]))
        np.testing.assert_array_equal(path, [*crf.decode(alone).numpy()[0], *[-1] * (4 - len(sentence))])
        np.testing.assert_allclose(rows[: len(sentence)], crf.marginals(alone).numpy()[0], atol=1e-5)
        assert not rows[len(sentence) :].any()


@pytest.mark.parametrize("jit_compile", [False, True])
def test_ragged_labels_must_be_padded(jit_compile):
    import tensorflow as tf

    crf = ConditionalRandomField()
    model = keras.Sequential([keras.layers.Embedding(20, 16, mask_zero=True), keras.layers.Dense(3), crf])
    model.compile("adam", crf.sparse_loss, metrics=[crf.sparse_accuracy], jit_compile=jit_compile)
    words, tags = tf.ragged.constant(SENTENCES).to_tensor(), tf.ragged.constant([[1, 2], [0, 1, 2], [0], [0, 1, 2, 0]])
    data = tf.data.Dataset.from_tensor_slices((words, tags)).batch(4)
    model.fit(data.map(lambda x, y: (x, y.to_tensor(-1))), shuffle=False, verbose=0)
    message = r"Labels must be padded with -1, as by `y.to_tensor\(-1\)`. Received: a (Symbolic)?RaggedTensor"
    for call in (lambda: model.fit(data, shuffle=False, verbose=0), lambda: crf.sparse_loss(tags, model(words))):
        with pytest.raises(ValueError, match=message):
            call()

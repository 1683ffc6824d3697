"""`predict` on batches of different lengths: TensorFlow returns a `RaggedTensor`, with the paths of its sentences."""

import numpy as np

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

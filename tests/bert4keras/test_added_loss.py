"""Tests of kcrf.bert4keras.

`Loss`: the value that it adds, the masks it sees, what it returns, and that a saved model has it.
"""

import numpy as np
import pytest
from conftest import few
from numpy.testing import assert_allclose
from seeds import set_seeds

from kcrf.backend import K, keras
from kcrf.layers import Loss
from kcrf.snippets import DataGenerator, sequence_padding


@keras.saving.register_keras_serializable(package="tests")
class TokenLoss(Loss):
    """The mean over real positions, as bert4keras' scripts write it."""

    def compute_loss(self, inputs, mask=None):
        true, predicted = inputs
        real = K.cast(mask[1], K.floatx())
        loss = K.sparse_categorical_crossentropy(true, predicted)
        return K.sum(loss * real) / K.sum(real)


def models(output_axis=1):
    """The model with the loss, and the one that it trains."""
    set_seeds(1)
    tokens, labels = keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(9, 4, mask_zero=True)(tokens)
    predicted = keras.layers.Dense(3, activation="softmax")(x)
    outputs = TokenLoss(output_axis)([labels, predicted])
    return keras.Model([tokens, labels], outputs), keras.Model(tokens, predicted)


TOKENS = np.array([[1, 2, 3, 0], [4, 5, 0, 0]])
GOLD = TOKENS % 3


def expected(model):
    p = model.predict(TOKENS, verbose=0)
    return -np.mean([np.log(p[i, t, GOLD[i, t]]) for i, t in np.argwhere(TOKENS > 0)])


@pytest.mark.once
def test_the_loss_is_that_of_the_real_positions_and_the_output_is_the_prediction(tmp_path):
    train, model = models()
    train.compile(keras.optimizers.SGD(0.0))
    assert_allclose(train.evaluate([TOKENS, GOLD], verbose=0), expected(model), rtol=1e-5)
    assert_allclose(train.predict([TOKENS, GOLD], verbose=0), model.predict(TOKENS, verbose=0), rtol=1e-6)
    train.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert_allclose(loaded.evaluate([TOKENS, GOLD], verbose=0), expected(model), rtol=1e-5)


def test_batches_without_labels_train(recwarn):
    class Batches(DataGenerator):
        def __iter__(self, random=False):
            rows = []
            for is_end, row in self.sample(random):
                rows.append(row)
                if len(rows) == self.batch_size or is_end:
                    tokens = sequence_padding(rows)
                    yield [tokens, tokens % 3], None
                    rows = []

    train, model = models()
    train.compile(keras.optimizers.Adam(0.05), jit_compile=K.backend() == "jax")
    batches, before = Batches([row[row > 0] for row in TOKENS] * 3, batch_size=2), expected(model)
    train.fit(batches.forfit(), steps_per_epoch=len(batches), epochs=6, verbose=0)
    assert expected(model) < 0.5 * before


@pytest.mark.slow
@pytest.mark.parametrize("axis, count", few((None, 2), ([1, 0], 2)))
def test_which_inputs_are_returned(axis, count):
    train, model = models(axis)
    found = train.predict([TOKENS, GOLD], verbose=0)
    order = [GOLD, model.predict(TOKENS, verbose=0)]
    assert len(found) == count
    for one, index in zip(found, axis or [0, 1]):
        assert_allclose(one, order[index], rtol=1e-6)


def test_a_loss_for_each_sentence_is_refused():
    class Wrong(Loss):
        def compute_loss(self, inputs, mask=None):
            return K.mean(inputs, axis=-1)

    with pytest.raises(ValueError, match=r"`compute_loss` must return a scalar, such as `K.mean\(loss\)`"):
        Wrong()(np.ones((2, 3), "float32"))
    with pytest.raises(NotImplementedError, match="A subclass of `Loss` says in `compute_loss"):
        Loss()(np.ones((2, 3), "float32"))

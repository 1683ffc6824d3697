"""kcrf.bert4keras: Names and arguments of older scripts: they work, or the error has the corrected line."""

import numpy as np
import pytest
from changed_keras import changed_keras  # noqa: F401 (a fixture)
from numpy.testing import assert_array_equal

from kcrf import snippets, tokenizers
from kcrf.backend import keras, ops
from kcrf.bert4keras.backend import K
from kcrf.bert4keras.layers import SetLearningRate
from kcrf.bert4keras.models import build_transformer_model
from kcrf.bert4keras.snippets import sequence_padding
from kcrf.bert4keras.tokenizers import Tokenizer

BACKENDS = ["torch"]
pytestmark = pytest.mark.usefixtures("changed_keras")
SIZES = dict(vocab_size=9, hidden_size=4, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)


def test_an_old_length_of_a_text_is_maxlen():
    tokens = {token: index for index, token in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "好", "天"])}
    old, new = Tokenizer(tokens), tokenizers.Tokenizer(tokens)
    for pair in (("好天好",), ("好天好", "天天")):
        assert old.encode(*pair, max_length=5) == old.encode(*pair, maxlen=5) == new.encode(*pair, maxlen=5)
        assert old.encode(*pair) == new.encode(*pair)
    assert old.tokenize("好天好", max_length=4) == new.tokenize("好天好", 4) == ["[CLS]", "好", "天", "[SEP]"]


def test_an_old_padding_is_value():
    rows = [[1, 2, 3], [4]]
    assert_array_equal(sequence_padding(rows, padding=-1), snippets.sequence_padding(rows, value=-1))
    assert_array_equal(sequence_padding(rows, 4, 7), snippets.sequence_padding(rows, 4, 7))


def test_the_wrapper_of_the_blog_moves_weights_faster_by_its_factor():
    """theta -= lamb * rate * gradient under SGD, whatever `is_ada` says."""
    x, y = np.eye(3, dtype="float32"), np.ones((3, 1), "float32")
    moved = []
    for wrap in (
        lambda layer: layer,
        lambda layer: SetLearningRate(layer, 10, True),
        lambda layer: SetLearningRate(layer, lamb=10),
    ):
        model = keras.Sequential([keras.Input((3,)), wrap(keras.layers.Dense(1, kernel_initializer="zeros"))])
        model.compile(keras.optimizers.SGD(0.01), "mse")
        model.train_on_batch(x, y)
        moved.append(ops.convert_to_numpy(model(x)))
    np.testing.assert_allclose(moved[1], 10 * moved[0], rtol=1e-5)
    np.testing.assert_allclose(moved[2], 10 * moved[0], rtol=1e-5)


def test_the_mask_of_an_output_is_that_of_the_tokens():
    bert = build_transformer_model(**SIZES)
    mask = keras.Model(bert.input, bert.get_layer("Embedding-Token").output_mask)
    tokens = np.array([[3, 4, 0], [5, 0, 0]])
    assert_array_equal(mask.predict([tokens, tokens * 0], verbose=0), tokens > 0)
    assert bert.get_layer("Input-Segment").output_mask is None


def test_a_function_of_a_module_of_keras_2_is_found():
    from keras.utils.np_utils import to_categorical

    assert_array_equal(to_categorical([1, 0], 2), [[0, 1], [1, 0]])


def test_sessions_are_to_be_removed():
    with pytest.raises(AttributeError, match="K has no 'set_session', .* no sessions, so remove the line"):
        K.set_session  # noqa: B018 (raises)


def test_a_layer_of_a_module_of_keras_2_is_found():
    names = {}
    exec("from keras.layers.embeddings import Embedding\nfrom keras.layers.core import Dense", names)
    assert names["Embedding"] is keras.layers.Embedding and names["Dense"] is keras.layers.Dense


def add_loss():
    model = build_transformer_model(**SIZES)
    model.add_loss(keras.ops.mean(model.output))


def several_devices():
    from keras.utils import multi_gpu_model

    multi_gpu_model(build_transformer_model(**SIZES), gpus=2)


def name_scope():
    from kcrf.bert4keras.backend import K

    with K.name_scope("layer"):
        pass


def adafactor():
    from kcrf.bert4keras.optimizers import AdaFactor  # noqa: F401


@pytest.mark.parametrize(
    "call, error, line",
    [
        (add_loss, NotImplementedError, "subclass `kcrf.bert4keras.layers.Loss`"),
        (several_devices, NotImplementedError, r"tf.distribute.MirroredStrategy\(\).scope\(\).*gpus=2"),
        (name_scope, AttributeError, "`from kcrf.bert4keras.layers import SetLearningRate`, which has its arguments"),
        (
            adafactor,
            ImportError,
            r"`keras.optimizers.Adafactor\(learning_rate, .*relative_step=False\)`",
        ),
    ],
)
def test_what_keras_3_cannot_do_is_answered_with_the_corrected_line(call, error, line):
    with pytest.raises(error, match=line):
        call()

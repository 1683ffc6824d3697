"""kcrf.models.build, kcrf.backend.keras3: layers called without the checks of Keras, or again for the gradient."""

from contextlib import nullcontext

import numpy as np
import pytest
from conftest import few

from kcrf.backend import DirectCalls, backend_name, keras, ops
from kcrf.layers import ConditionalRandomField, MultiHeadAttention
from kcrf.models import build_transformer_model

BACKENDS = ["torch", "jax", "tensorflow"]
SIZES = dict(vocab_size=20, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16)
SIZES |= dict(max_position=8)
WORDS = [np.array([[3, 4, 5, 6], [7, 8, 0, 0], [0, 0, 0, 0]], "int32"), np.zeros((3, 4), "int32")]
TAGS = np.array([[0, 1, 2, 3], [3, 2, 0, 0], [1, 0, 0, 0]], "int32")
on_torch = pytest.mark.skipif(backend_name() != "torch", reason="only torch runs Python in every step")


def tagger(scope=None, **options):
    keras.utils.set_random_seed(1)
    with scope or nullcontext():
        encoder = build_transformer_model(**SIZES, **options)
        layer = ConditionalRandomField(10)
    model = keras.Model(encoder.inputs, layer(keras.layers.Dense(4)(encoder.output)))
    model.compile(keras.optimizers.SGD(0.1), loss=layer.sparse_loss)
    return model


def trained(model):
    """The losses of two steps, and the weights after them."""
    keras.utils.set_random_seed(2)
    losses = [float(model.train_on_batch(WORDS, TAGS)) for _ in range(2)]
    return [np.array(losses), *map(ops.convert_to_numpy, model.trainable_variables)]


def assert_equal(one, other, atol=1e-6):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, atol=atol)


@on_torch
@pytest.mark.parametrize("options", few({}, {"model": "nezha"}, {"dtype": "mixed_bfloat16"}, {"mixout": 0.2}))
def test_layers_of_a_model_compute_what_they_compute_through_keras(options, monkeypatch):
    options = dict(options)
    keras.config.set_dtype_policy(options.pop("dtype", "float32"))
    try:
        direct = tagger(**options)
        calls, plain = [], keras.layers.Layer.__call__

        def counted(self, *args, **kwargs):
            calls.append(self)
            return plain(self, *args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(keras.layers.Layer, "__call__", counted)
            direct(WORDS, training=True)
        assert len(calls) < 16 < len(direct._flatten_layers())
        found, outputs = trained(direct), direct.predict(WORDS, verbose=0)
        monkeypatch.delattr(DirectCalls, "__call__")
        through_keras = tagger(**options)
        assert_equal(found, trained(through_keras), 0)
        np.testing.assert_array_equal(outputs, through_keras.predict(WORDS, verbose=0))
    finally:
        keras.config.set_dtype_policy("float32")


@on_torch
def test_attention_layers_share_the_numbers_of_a_mask_within_a_call_alone(monkeypatch):
    import torch

    biases, attend = [], torch.nn.functional.scaled_dot_product_attention

    def watched(query, key, value, bias, dropout):
        biases.append(bias)
        return attend(query, key, value, bias, dropout)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", watched)
    model = tagger()
    for call in (model, lambda words: model(words, training=True)):
        biases.clear()
        call(WORDS)
        assert len(biases) == SIZES["num_hidden_layers"] and biases[0] is biases[1]
    layer, hidden, mask = MultiHeadAttention(2, 4), torch.randn(2, 3, 8), torch.ones(2, 3, dtype=torch.bool)

    class Twice(keras.layers.Layer):
        def call(self, hidden):
            return layer(hidden, mask=mask), layer(hidden, mask=mask.flip(1)), layer(hidden, mask=mask)

    layer(hidden, mask=mask)
    mask[:, 1:] = False  # in place
    wanted, other = (layer(hidden, mask=x.clone()) for x in (mask, mask.flip(1)))
    assert_equal(map(ops.convert_to_numpy, Twice()(hidden)), map(ops.convert_to_numpy, (wanted, other, wanted)), 0)
    assert not np.allclose(*map(ops.convert_to_numpy, (wanted, other)))


def test_keras_keeps_only_a_tensor_for_layers_that_need_no_mask():
    names = ("Embedding-Dropout", "Transformer-0-FeedForward", "Transformer-1-FeedForward-Dropout")
    layers = map(tagger(dropout_rate=0.1).get_layer, names)
    assert [layer._inbound_nodes[0].arguments.kwargs for layer in layers] == [{}] * 3


@on_torch
@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize` method")
def test_hooks_of_torch_are_called_and_int8_layers_are_quantized():
    model, seen = tagger(), []
    name = "Transformer-1-FeedForward"
    model.get_layer(name).register_forward_hook(lambda layer, inputs, output: seen.append(layer.name))
    before = model.predict(WORDS, verbose=0)
    assert seen == [name]
    model.quantize("int8")
    after = model.predict(WORDS, verbose=0)
    real = np.isfinite(before)
    assert 0 < np.abs(after[real] - before[real]).max() < 0.3


@pytest.mark.parametrize("how", few("remat", "full", "activations"))
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_layers_that_compute_again_give_the_same_gradients(how, dropout):
    rates = {"dropout_rate": dropout, "attention_dropout_rate": dropout}
    if how == "remat":
        again = tagger(remat=True, **rates)
    else:
        again = tagger(keras.RematScope(mode=how), **rates)
    assert_equal(trained(again), trained(tagger(**rates)))


@on_torch
def test_layers_that_compute_again_keep_less():
    import torch

    def kept(model):
        sizes = {}

        def keep(x):
            sizes[x.data_ptr()] = x.nbytes
            return x

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
            loss = model.compute_loss(y=TAGS, y_pred=model(WORDS, training=True))
        loss.backward()
        return sum(sizes.values()) - sum(variable.value.nbytes for variable in model.trainable_variables)

    assert kept(tagger(remat=True)) < 0.7 * kept(tagger())

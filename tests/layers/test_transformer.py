"""kcrf.layers: The layers of an encoder against their formulas, written out in NumPy float64."""

import math

import numpy as np
import pytest
from conftest import few

from kcrf.backend import backend_name, keras, ops
from kcrf.layers import (
    Embedding,
    FeedForward,
    LayerPooling,
    MultiHeadAttention,
    PositionEmbedding,
    RelativePositionEmbedding,
)
from kcrf.layers.dense import BiasAdd, Dense, MixoutDense, ResidualAdd, TruncatedNormal, gelu_tanh
from kcrf.layers.pooling import FirstToken

RNG = np.random.default_rng(0)


def array(*shape):
    return RNG.normal(size=shape).astype("float32")


def number(tensor):
    return np.asarray(ops.convert_to_numpy(tensor), "float64")


def assert_close(ours, theirs, tolerance=2e-5):
    np.testing.assert_allclose(number(ours), theirs, rtol=tolerance, atol=tolerance)


def randomize(layer):
    """Weights of every layer inside, biases too, far from their start."""
    for variable in layer.trainable_variables:
        variable.assign(array(*variable.shape) * 0.5)


# ---- oracles


def softmax(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def project(dense, x):
    return x @ number(dense.kernel) + number(dense.bias)


def attention(layer, hidden, mask, relative=None):
    """One sentence and one head and one query at a time."""
    batch, time, _ = hidden.shape
    query, key, value = (project(dense, hidden) for dense in (layer.query, layer.key, layer.value))
    context = np.zeros((batch, time, layer.heads * layer.head_size))
    for b in range(batch):
        for h in range(layer.heads):
            narrow = slice(h * layer.key_size, (h + 1) * layer.key_size)
            wide = slice(h * layer.head_size, (h + 1) * layer.head_size)
            for j in range(time):
                near = np.zeros((time, layer.key_size)) if relative is None else relative[j]
                scores = (key[b, :, narrow] + near) @ query[b, j, narrow] / math.sqrt(layer.key_size)
                weights = np.zeros(time)
                weights[mask[b]] = softmax(scores[mask[b]])
                seen = value[b, :, wide] if relative is None else value[b, :, wide] + near
                context[b, j, wide] = weights @ seen
    return project(layer.output_dense, context)


def sinusoid(distance, size):
    """The vector of one clipped distance, by the formula of the NEZHA paper."""
    place = min(max(distance, -64), 64) + 64
    angles = [place / 10000 ** (2 * i / size) for i in range(size // 2)]
    return [f(angle) for angle in angles for f in (math.sin, math.cos)]


# ---- attention


@pytest.mark.parametrize(
    "batch, time, heads, size, key_size", few((2, 5, 3, 2, 3), (1, 1, 1, 1, 1), (3, 6, 2, 4, 4), (2, 4, 1, 3, 1))
)
def test_attention_is_its_formula_and_masked_keys_are_not_seen(batch, time, heads, size, key_size):
    layer = MultiHeadAttention(heads, size, out_dim=5, key_size=key_size)
    hidden, mask = array(batch, time, 7), RNG.random((batch, time)) < 0.5  # holes too
    mask[:, 0] = True
    layer.build(hidden.shape)
    randomize(layer)
    assert_close(layer(hidden, mask=mask), attention(layer, hidden.astype("float64"), mask))
    assert_close(layer(hidden), attention(layer, hidden.astype("float64"), np.ones_like(mask)))


@pytest.mark.parametrize("time", few(70, 1, 5))
def test_relative_positions_are_sinusoids_of_the_clipped_distance(time):
    table = number(RelativePositionEmbedding(6)(array(1, time, 3)))
    expected = [[sinusoid(k - j, 6) for k in range(time)] for j in range(time)]
    np.testing.assert_allclose(table, expected, atol=1e-5)


def test_attention_adds_relative_positions_to_keys_and_to_values():
    layer = MultiHeadAttention(2, 4)
    hidden, mask = array(2, 5, 8), np.array([[True] * 5, [True, True, False, True, False]])
    positions = number(RelativePositionEmbedding(4)(hidden)).astype("float32")
    layer.build([hidden.shape, positions.shape])
    randomize(layer)
    expected = attention(layer, hidden.astype("float64"), mask, positions.astype("float64"))
    assert_close(layer([hidden, positions], mask=[mask, None]), expected)


@pytest.mark.once
def test_attention_dropout_acts_in_training_only_and_keeps_the_expectation():
    layer = MultiHeadAttention(2, 4, attention_dropout=0.5)
    hidden, mask = array(1, 4, 8), np.array([[True, True, True, False]])
    layer.build(hidden.shape)
    randomize(layer)
    exact = attention(layer, hidden.astype("float64"), mask)
    assert_close(layer(hidden, mask=mask), exact)
    many = number(layer(np.repeat(hidden, 4000, 0), mask=np.repeat(mask, 4000, 0), training=True))
    assert np.abs(many[0] - exact[0]).max() > 0.1
    np.testing.assert_allclose(many.mean(0), exact[0], atol=6 * (many.std(0) / math.sqrt(4000)).max())


def test_training_without_dropout_is_inference():
    layer = MultiHeadAttention(2, 4)
    hidden = array(2, 3, 8)
    assert_close(layer(hidden, training=True), number(layer(hidden)))


def test_half_precision_masks_without_overflow():
    layer = MultiHeadAttention(2, 4, attention_dropout=0.1, dtype="mixed_float16")
    hidden, mask = array(1, 4, 8), np.array([[True, True, False, False]])
    assert np.isfinite(number(layer(hidden, mask=mask, training=True))).all()
    assert_close(layer(hidden, mask=mask), attention(layer, hidden.astype("float64"), mask), 5e-3)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("training", [False, True])
def test_attention_is_fused_where_that_is_faster(dtype, training, monkeypatch):
    module, name = ops, "dot_product_attention"
    if backend_name() == "torch":
        import torch

        module, name = torch.nn.functional, "scaled_dot_product_attention"
    layer, calls, fused = MultiHeadAttention(2, 4, dtype=dtype), [], getattr(module, name)
    hidden, mask = array(2, 3, 8), np.array([[True, True, False], [True, True, True]])
    layer.build(hidden.shape)
    monkeypatch.setattr(module, name, lambda *args, **more: calls.append(1) or fused(*args, **more))
    found = number(layer(hidden, mask=mask, training=training))
    is_slow = backend_name() == "torch" and dtype != "float32" and training  # on a CPU
    assert len(calls) == (0 if is_slow else 1)
    assert_close(found, attention(layer, hidden.astype("float64"), mask), 1e-5 if dtype == "float32" else 0.03)


@pytest.mark.skipif(backend_name() != "jax", reason="cuDNN's attention is called by JAX")
@pytest.mark.parametrize(("time", "training"), [(8, False), (8, True), (7, True)])
def test_masked_attention_in_half_precision_lowers_to_cudnn(time, training, monkeypatch):
    """JAX checks the layout when it lowers a program for CUDA, which needs no GPU."""
    import jax
    from jax._src.cudnn import fused_attention_stablehlo as cudnn

    monkeypatch.setattr(cudnn, "check_cudnn_version", lambda: 91_000)
    monkeypatch.setattr(cudnn, "check_compute_capability", lambda version: True)
    layer = MultiHeadAttention(2, 64, dtype="mixed_bfloat16")
    layer.build((2, time, 128))
    hidden, mask = array(2, time, 128), np.ones((2, time), bool)

    def loss(weights):
        outputs, _ = layer.stateless_call(weights, [], hidden, mask=mask, training=training)
        return ops.sum(ops.cast(outputs, "float32"))

    calls = [f"__cudnn$fmhaScaleBiasSoftmax{end}" for end in ("", "Backward")]
    checks = [jax.export.DisabledSafetyCheck.custom_call(name) for name in calls]
    program = jax.jit(jax.grad(loss) if training else loss)
    exported = jax.export.export(program, platforms=["cuda"], disabled_checks=checks)
    code = exported([variable.value for variable in layer.trainable_variables]).mlir_module()
    assert [name + '"' in code or name + "(" in code for name in calls] == [time == 8, time == 8 and training]


def test_every_projection_draws_its_own_values_from_one_unseeded_initializer():
    initializer = TruncatedNormal(stddev=0.02)
    layers = [MultiHeadAttention(2, 3, kernel_initializer=initializer) for _ in range(2)]
    forward = FeedForward(6, kernel_initializer=initializer)
    for layer in (*layers, forward):
        layer.build((None, None, 6))
    kernels = [number(v) for layer in (*layers, forward) for v in layer.trainable_variables if v.name == "kernel"]
    assert len(kernels) == 10
    for i, kernel in enumerate(kernels):
        assert all(np.abs(kernel - other).max() > 1e-3 for other in kernels[:i])


def test_the_truncated_normal_is_cut_at_two_sigma_and_repeats_under_its_seed():
    values = number(TruncatedNormal(0.5, seed=3)((500, 400)))
    assert 0.99 < np.abs(values).max() <= 1.0
    assert abs(values.mean()) < 0.005 and abs(values.std() - 0.8796 * 0.5) < 0.004
    np.testing.assert_array_equal(values, number(TruncatedNormal(0.5, seed=3)((500, 400))))
    one = TruncatedNormal()
    np.testing.assert_array_equal(number(one((3, 3))), number(one((3, 3))))  # as in Keras: an instance, a draw
    assert np.abs(number(one((3, 3))) - number(TruncatedNormal()((3, 3)))).max() > 1e-4


# ---- feed-forward, activations


def test_feed_forward_is_two_dense_layers_with_the_exact_gelu():
    layer = FeedForward(7)
    hidden = array(2, 3, 4)
    layer.build(hidden.shape)
    randomize(layer)
    inner = project(layer.intermediate, hidden.astype("float64"))
    inner = inner * 0.5 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
    assert_close(layer(hidden), project(layer.output_dense, inner))


def test_gelu_tanh_is_the_formula_of_the_first_bert():
    x = np.linspace(-4, 4, 41)
    expected = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    assert_close(gelu_tanh(x.astype("float32")), expected, 1e-6)
    exact = 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
    assert np.abs(expected - exact).max() > 1e-4  # so the two can be told apart


# ---- embeddings


def test_padding_is_masked_but_no_row_is_masked_completely():
    for padding, shift in ((0, 0), (4, 4)):
        layer = Embedding(9, 2, mask_zero=True, padding_id=padding)
        tokens = np.array([[3, 0, 1, 0], [0, 0, 0, 2], [0, 0, 0, 0]]) + shift
        mask = layer.compute_mask(ops.convert_to_tensor(tokens))
        np.testing.assert_array_equal(number(mask), [[1, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]])


def test_the_reverse_of_an_embedding_multiplies_by_its_table_and_keeps_the_mask():
    layer = Embedding(5, 3, mask_zero=True)
    tokens = np.array([[1, 4, 0]])
    hidden = layer(tokens)
    scores = layer(hidden, reverse=True)
    table = number(layer.embeddings)
    assert_close(scores, table[tokens] @ table.T, 1e-6)
    np.testing.assert_array_equal(number(scores._keras_mask), [[1, 1, 0]])
    assert layer(keras.Input((None, 3)), reverse=True).shape == (None, None, 5)


def test_positions_count_from_zero_or_are_given():
    hidden, ids = array(2, 3, 4), np.array([[2, 2, 0], [1, 0, 5]])
    counted, given = PositionEmbedding(6, 4), PositionEmbedding(6, 4, custom_position_ids=True)
    counted.build(hidden.shape)
    given.build([hidden.shape, ids.shape])
    randomize(counted)
    given.set_weights(counted.get_weights())
    table = number(counted.embeddings)
    assert_close(counted(hidden), hidden + table[:3], 1e-6)
    assert_close(given([hidden, ids]), hidden + table[ids], 1e-6)


@pytest.mark.parametrize("hierarchical, share", [(True, 0.4), (0.25, 0.25)])
def test_hierarchical_positions_equal_the_table_inside_it_and_combine_two_of_it_beyond(hierarchical, share):
    layer = PositionEmbedding(3, 4, hierarchical=hierarchical)
    hidden = np.zeros((1, 8, 4), "float32")
    layer.build(hidden.shape)
    randomize(layer)
    table = number(layer.embeddings)
    base = (table - share * table[0]) / (1 - share)
    expected = [share * base[i // 3] + (1 - share) * base[i % 3] for i in range(8)]
    assert_close(layer(hidden)[0], expected)
    assert_close(layer(hidden)[0, :3], table)


def test_a_position_beyond_the_table_is_refused():
    with pytest.raises(ValueError, match="`short` has 2 positions; hierarchical_position=True.*Received: length=3"):
        PositionEmbedding(2, 4, name="short")(array(1, 3, 4))


def test_odd_relative_positions_are_refused():
    with pytest.raises(ValueError, match="`output_dim` must be even: sines and cosines come in pairs. Received: 5"):
        RelativePositionEmbedding(5)


# ---- Dense


@pytest.mark.parametrize("use_bias", [True, False])
def test_dense_is_the_stock_layer(use_bias):
    stock, ours = (cls(5, activation="tanh", use_bias=use_bias) for cls in (keras.layers.Dense, Dense))
    x = array(2, 3, 4)
    stock(x), ours(x)
    randomize(ours)
    stock.set_weights(ours.get_weights())
    assert_close(ours(x), number(stock(x)))


@pytest.mark.once
@pytest.mark.parametrize("layer", few(Dense, lambda units, name: MixoutDense(units, mixout=0.3, name=name)))
def test_dense_can_be_quantized_and_saved_as_the_stock_layer(layer, tmp_path):
    model = keras.Sequential([keras.Input((3, 16)), layer(8, name="projection")])
    x = array(2, 3, 16)
    exact = number(model(x))
    model.quantize("int8", filters="projection")
    assert model.layers[0].kernel.dtype == "int8"
    quantized = number(model(x))
    np.testing.assert_allclose(quantized, exact, atol=0.05)
    model.save(tmp_path / "model.keras")
    assert_close(keras.models.load_model(tmp_path / "model.keras")(x), quantized)


# ---- mixout


def mixed_kernels(layer, count=600):
    """The kernels of many training steps, read off the response to unit inputs."""
    units = np.eye(layer.kernel.shape[0], dtype="float32")
    return np.stack([number(layer(units, training=True)) - number(layer.bias) for _ in range(count)])


def mixout_layer(p):
    layer = MixoutDense(3, mixout=p, seed=1)
    layer.build((None, 5))
    layer.kernel.assign(array(5, 3))
    layer.prior.assign(array(5, 3))
    layer.bias.assign(array(3))
    return layer


@pytest.mark.once
@pytest.mark.parametrize("p", few(0.5, 0.1, 0.9))
def test_mixout_takes_whole_rows_of_the_kernel_by_the_formula_of_the_paper(p):
    layer = mixout_layer(p)
    kernel, prior = number(layer.kernel), number(layer.prior)
    kept, swapped = (kernel - p * prior) / (1 - p), (prior - p * prior) / (1 - p)  # mask 1 and mask 0
    draws = mixed_kernels(layer)
    is_kept = np.isclose(draws, kept, atol=1e-4 / (1 - p)).all(-1)  # (draw, input unit)
    is_swapped = np.isclose(draws, swapped, atol=1e-4 / (1 - p)).all(-1)
    assert (is_kept ^ is_swapped).all()
    shares = is_kept.mean(0)
    np.testing.assert_allclose(shares, 1 - p, atol=4.5 * math.sqrt(p * (1 - p) / 600))
    assert len({tuple(row) for row in is_kept}) > 3  # units are drawn apart


@pytest.mark.slow
def test_mixout_keeps_the_expectation():
    layer = mixout_layer(0.5)
    draws = mixed_kernels(layer, 1500)
    np.testing.assert_allclose(draws.mean(0), number(layer.kernel), atol=5 * (draws.std(0) / math.sqrt(1500)).max())


def test_mixout_is_off_at_inference_and_starts_at_its_own_kernel():
    layer = mixout_layer(0.7)
    x = array(4, 5)
    assert_close(layer(x), project(layer, x.astype("float64")))
    fresh = MixoutDense(3, mixout=0.7, activation="tanh")
    assert_close(fresh(x, training=True), np.tanh(project(fresh, x.astype("float64"))))
    np.testing.assert_array_equal(number(fresh.prior), number(fresh.kernel))


def test_the_prior_is_not_trained():
    layer = mixout_layer(0.5)
    assert [v.name for v in layer.trainable_variables] == ["kernel", "bias"]
    assert "prior" in [v.name for v in layer.non_trainable_variables]


@pytest.mark.parametrize("mixout", [-0.1, 1.0, 2])
def test_mixout_is_a_probability_below_one(mixout):
    with pytest.raises(ValueError, match=f"`mixout` must be a probability, 0 <= mixout < 1. Received: mixout={mixout}"):
        MixoutDense(3, mixout=mixout)


# ---- reading several layers

STATES = [array(2, 3, 4) for _ in range(4)]
EXPECTED = {
    "concat": lambda states: np.concatenate(states, -1),
    "mean": lambda states: np.mean(states, 0),
    "max": lambda states: np.max(states, 0),
    "weighted": lambda states: np.mean(states, 0),  # the start
}


@pytest.mark.parametrize("layers", [None, [0], [-1, 1, 2]])
@pytest.mark.parametrize("mode", EXPECTED)
def test_layer_pooling_takes_the_layers_it_was_told(mode, layers):
    chosen = [STATES[index].astype("float64") for index in (range(4) if layers is None else layers)]
    pooled = LayerPooling(mode, layers)
    assert_close(pooled(STATES), EXPECTED[mode](chosen), 1e-6)
    symbolic = LayerPooling(mode, layers)([keras.Input((None, 4)) for _ in STATES])
    assert symbolic.shape[-1] == EXPECTED[mode](chosen).shape[-1]


def test_weighted_pooling_is_a_softmax_over_the_layers():
    pooled = LayerPooling("weighted", [3, 0])
    pooled(STATES)
    pooled.layer_weights.assign([1.0, -0.5])
    share = 1 / (1 + math.exp(-1.5))
    assert_close(pooled(STATES), share * STATES[3] + (1 - share) * STATES[0])


@pytest.mark.parametrize(
    "make, text",
    [
        (
            lambda: LayerPooling("sum"),
            r"`mode` must be one of \('concat', 'max', 'mean', 'weighted'\). Received: mode='sum'",
        ),
        (lambda: LayerPooling(layers=[]), r"`layers` must name at least one layer. Received: layers=\[\]"),
        (lambda: LayerPooling(layers=[4])(STATES), r"indices of the 4 inputs. Received: layers=\[4\]"),
        (lambda: LayerPooling()(STATES[0]), "`LayerPooling` needs a list of hidden states. Received: one of shape"),
    ],
)
def test_what_cannot_be_pooled_is_refused(make, text):
    with pytest.raises(ValueError, match=text):
        make()


# ---- all of them

LAYERS = {
    "embedding": (lambda: Embedding(7, 4, transformer_config={"model": "bert", "keep": [1, 2]}), None),
    "add": (ResidualAdd, [(None, None, 4), (None, None, 4)]),
    "position": (lambda: PositionEmbedding(9, 4, hierarchical=0.3), (None, None, 4)),
    "positions": (lambda: PositionEmbedding(9, 4, custom_position_ids=True), [(None, None, 4), (None, None)]),
    "relative": (lambda: RelativePositionEmbedding(4, max_distance=3), (None, 5, 4)),
    "attention": (lambda: MultiHeadAttention(2, 3, 4, 2, attention_dropout=0.1, mixout=0.2), (None, None, 4)),
    "forward": (lambda: FeedForward(6, gelu_tanh, mixout=0.2), (None, None, 4)),
    "first": (FirstToken, (None, None, 4)),
    "bias": (BiasAdd, (None, None, 4)),
    "mixout": (lambda: MixoutDense(5, mixout=0.3, seed=2, activation="relu"), (None, None, 4)),
    "pooling": (lambda: LayerPooling("weighted", [0, 1]), [(None, None, 4)] * 3),
}


@pytest.mark.once
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_comes_back_from_its_config_and_from_a_file(name, tmp_path):
    make, shapes = LAYERS[name]
    layer = make()
    config = layer.get_config()
    assert type(layer).from_config(config).get_config() == config
    assert keras.saving.get_registered_name(type(layer)) == f"kcrf>{type(layer).__name__}"
    if shapes is None:
        inputs, x = keras.Input((None,), dtype="int32"), np.array([[1, 2, 0]])
    else:
        listed = shapes if isinstance(shapes, list) else [shapes]
        inputs = [keras.Input(shape[1:]) for shape in listed]
        x = [np.abs(array(2, *(3 if size is None else size for size in shape[1:]))) for shape in listed]
        inputs, x = (inputs, x) if isinstance(shapes, list) else (inputs[0], x[0])
    model = keras.Model(inputs, layer(inputs))
    randomize(model)
    model.save(tmp_path / "m.keras")
    again = keras.saving.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(number(again(x)), number(model(x)))


def test_masks_go_through_every_layer_and_end_at_the_first_token():
    tokens = keras.Input((None,), dtype="int32")
    x = Embedding(7, 4, mask_zero=True)(tokens)
    mask = x._keras_mask
    x = ResidualAdd()([x, keras.layers.Embedding(7, 4)(tokens)])
    for layer in (PositionEmbedding(9, 4), MultiHeadAttention(2, 2), FeedForward(3), BiasAdd(), MixoutDense(4)):
        x = layer(x)
        assert x._keras_mask is mask, layer
    assert LayerPooling()([x, x])._keras_mask is mask
    positions = RelativePositionEmbedding(2)(x)
    assert MultiHeadAttention(2, 2)([x, positions])._keras_mask is mask
    assert getattr(FirstToken()(x), "_keras_mask", None) is None


@pytest.mark.once
def test_an_embedding_masks_nothing_unless_it_is_told_to():
    assert Embedding(5, 2).compute_mask(ops.convert_to_tensor([[1, 0]])) is None

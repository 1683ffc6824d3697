"""Tests of kcrf.bert4keras.

Global pointers: scores beside the formula and beside bert4keras, and the sparse loss beside the dense formula.
"""

import numpy as np
import pytest
from bert4keras_host import bert4keras_python  # noqa: F401 (a fixture)
from numpy.testing import assert_allclose

from kcrf.backend import K, keras, ops
from kcrf.layers import EfficientGlobalPointer, GlobalPointer

BACKENDS = ["torch", "tensorflow", "jax"]

random = np.random.default_rng(0)
HEADS, SIZE = 3, 4
HIDDEN = np.random.default_rng(1).normal(size=(2, 5, 6)).astype("float32")
MASK = np.array([[True] * 5, [True, True, True, False, False]])
BOTH = pytest.mark.parametrize("kind", [GlobalPointer, EfficientGlobalPointer])


def rotated(vector, position):
    """The pairs of a vector as complex numbers, turned by the position times a rate for each pair."""
    pairs = vector[::2] + 1j * vector[1::2]
    rates = 10000.0 ** (-np.arange(0, SIZE, 2) / SIZE)
    turned = pairs * np.exp(1j * position * rates)
    return np.stack([turned.real, turned.imag], axis=-1).reshape(-1)


def expected(weights, efficient, rotate, forward_only):
    """One pair of positions at a time, in float64."""
    weights = [np.asarray(w, "float64") for w in weights]
    x = HIDDEN @ weights[0] + weights[1]
    batch, time = HIDDEN.shape[:2]
    scores = np.full((batch, HEADS, time, time), -np.inf)
    turn = rotated if rotate else lambda vector, position: vector
    for b, h, m, n in np.ndindex(scores.shape):
        if not (MASK[b, m] and MASK[b, n]) or (forward_only and m > n):
            continue
        if efficient:
            query, key = x[b, m, ::2], x[b, n, 1::2]
        else:
            query, key = np.split(x[b, m, 2 * SIZE * h : 2 * SIZE * (h + 1)], 2)[0], None
            key = np.split(x[b, n, 2 * SIZE * h : 2 * SIZE * (h + 1)], 2)[1]
        scores[b, h, m, n] = turn(query, m) @ turn(key, n) / SIZE**0.5
        if efficient:
            ends = (x[b] @ weights[2] + weights[3]) / 2
            scores[b, h, m, n] += ends[n, 2 * h] + ends[m, 2 * h + 1]
    return scores


def made(kind, **options):
    layer = kind(HEADS, SIZE, **options)
    layer(HIDDEN)
    layer.set_weights([random.normal(size=w.shape) for w in layer.get_weights()])
    return layer


@pytest.mark.once
@BOTH
@pytest.mark.parametrize("rotate, forward_only", [(True, True), (False, False)])
def test_scores_are_those_of_the_formula(kind, rotate, forward_only):
    layer = made(kind, RoPE=rotate, tril_mask=forward_only)
    found = ops.convert_to_numpy(layer(HIDDEN, mask=ops.convert_to_tensor(MASK)))
    wanted = expected(layer.get_weights(), kind is EfficientGlobalPointer, rotate, forward_only)
    assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


THEIRS = """
from bert4keras.backend import K, sparse_multilabel_categorical_crossentropy
from bert4keras import layers
mask = K.constant(inputs["mask"])
for name in ("GlobalPointer", "EfficientGlobalPointer"):
    layer = getattr(layers, name)(inputs["heads"], inputs["size"])
    layer(K.constant(inputs["hidden"]))
    layer.set_weights([inputs[name + str(i)] for i in range(len(layer.get_weights()))])
    outputs[name] = K.eval(layer(K.constant(inputs["hidden"]), mask=mask))
for mask_zero in (False, True):
    labels, scores = K.constant(inputs["labels"]), K.constant(inputs["scores"])
    outputs["loss" + str(mask_zero)] = K.eval(sparse_multilabel_categorical_crossentropy(labels, scores, mask_zero))
"""


@pytest.mark.once
def test_scores_and_losses_are_those_of_bert4keras(bert4keras_python):  # noqa: F811
    layers = {kind.__name__: made(kind) for kind in (GlobalPointer, EfficientGlobalPointer)}
    weights = {f"{name}{i}": w for name, layer in layers.items() for i, w in enumerate(layer.get_weights())}
    scores, labels = random.normal(size=(4, 3, 9)).astype("float32"), np.tile([3, 5, 8], (4, 3, 1))
    theirs = bert4keras_python(
        THEIRS, heads=HEADS, size=SIZE, hidden=HIDDEN, mask=MASK, scores=scores, labels=labels, **weights
    )
    for name, layer in layers.items():
        found = ops.convert_to_numpy(layer(HIDDEN, mask=ops.convert_to_tensor(MASK)))
        assert_allclose(found, theirs[name], rtol=1e-4, atol=1e-4)
    from kcrf.backend import sparse_multilabel_categorical_crossentropy as sparse

    for mask_zero in (False, True):
        assert_allclose(K.eval(sparse(labels, scores, mask_zero)), theirs[f"loss{mask_zero}"], rtol=1e-4)


def test_the_sparse_loss_is_the_sum_over_pairs_of_right_and_wrong_classes():
    from kcrf.backend import sparse_multilabel_categorical_crossentropy as sparse

    scores = random.normal(size=(4, 7)).astype("float32") * 3
    scores[0, 6] = -np.inf
    labels = [[1, 2], [4, 0], [0, 3], [5, 6]]
    found = K.eval(sparse(np.array(labels, "float32"), scores))  # labels come as floats from `fit`
    without_zero = K.eval(sparse(np.array(labels), scores, mask_zero=True))
    for row, right, one, other in zip(scores.astype("float64"), labels, found, without_zero):
        for loss, start, kept in ((one, 0, right), (other, 1, [label for label in right if label])):
            wrong = [row[i] for i in range(start, 7) if i not in kept]
            value = np.log1p(np.exp(wrong).sum()) + np.log1p(np.exp([-row[i] for i in kept]).sum())
            assert_allclose(loss, value, rtol=1e-5)


@pytest.mark.once
@BOTH
def test_a_pointer_trains_without_nan_and_a_saved_model_is_the_same(kind, tmp_path):
    tokens = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(9, 6, mask_zero=True)(tokens)
    model = keras.Model(tokens, kind(HEADS, SIZE, name="pointer")(x))
    ids = np.array([[1, 2, 3, 4], [5, 6, 0, 0]])
    spans = np.zeros((2, HEADS, 4, 4), "float32")
    spans[0, 0, 0, 2] = spans[1, 2, 0, 1] = 1

    def loss(true, scores):
        scores = ops.maximum(scores, -1e9)
        wrong = ops.logaddexp(0.0, ops.logsumexp(scores - 1e9 * true, axis=(2, 3)))
        return ops.mean(wrong + ops.logaddexp(0.0, ops.logsumexp(-scores - 1e9 * (1 - true), axis=(2, 3))))

    model.compile(keras.optimizers.Adam(0.05), loss, jit_compile=K.backend() == "jax")
    model.fit(ids, spans, epochs=60, verbose=0)
    found = model.predict(ids, verbose=0)
    assert [tuple(place) for place in np.argwhere(found > 0)] == [(0, 0, 0, 2), (1, 2, 0, 1)]
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    assert_allclose(loaded.predict(ids, verbose=0), found, rtol=1e-5)


def test_an_odd_head_size_is_refused():
    with pytest.raises(ValueError, match="`head_size` must be even. Received: head_size=5"):
        GlobalPointer(2, 5)


@pytest.mark.once
@pytest.mark.parametrize("kind", [GlobalPointer, EfficientGlobalPointer])
def test_all_of_a_pointer_computes_in_its_own_precision(kind):
    layer = kind(2, 4, dtype="mixed_bfloat16")
    assert "bfloat16" in str(layer(np.ones((1, 3, 8), "float32")).dtype)
    assert {part.compute_dtype for part in layer._flatten_layers()} == {"bfloat16"}

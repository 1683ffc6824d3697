"""The layers of a BERT-like encoder, cut where bert4keras cuts them, and what reads their outputs.

The padding mask is made once, by `kcrf.embeddings.Embedding`, and travels as a Keras mask through every layer here, so
that a layer behind the encoder (a CRF behind a Dense, say) finds it without being told.
"""

import random

import numpy as np

from kcrf.backend import keras, linear, ops
from kcrf.bert4keras_backend import gelu_tanh

__all__ = [
    "BiasAdd",
    "FeedForward",
    "FirstToken",
    "LayerPooling",
    "MixoutDense",
    "MultiHeadAttention",
    "ResidualAdd",
    "TruncatedNormal",
    "gelu_tanh",
]

MASKED_SCORE = {"float16": -3e4, "bfloat16": -1e9, "float32": -1e9, "float64": -1e9}  # its exponential is 0

register = keras.saving.register_keras_serializable(package="kcrf")


@register
class ResidualAdd(keras.layers.Add):
    """The sum of its inputs, under the mask of the first."""

    def compute_mask(self, inputs, mask=None):
        return mask[0] if mask else None


@register
class Dense(keras.layers.Dense):
    """The stock Dense layer, whose bias joins its product in one operation where the backend has one."""

    def call(self, inputs, training=False):
        return self._project(inputs, self.kernel)

    def quantize(self, mode=None, type_check=False, config=None):
        super().quantize(mode, type_check=False, config=config)  # Keras refuses subclasses, whose call may be another

    def _project(self, inputs, kernel):
        outputs = linear(inputs, kernel, self.bias)
        return outputs if self.activation is None else self.activation(outputs)


@register
class MixoutDense(Dense):
    """A Dense layer that, while training, takes a random part of its kernel from a prior.

    One draw per input unit: with probability `mixout` the unit's row of the kernel is the prior's, and the rest is
    scaled so that the expectation is the kernel itself:

        kernel = (mask * kernel + (1 - mask) * prior - mixout * prior) / (1 - mixout),    mask ~ Bernoulli(1 - mixout)

    The prior is a weight that is not trained: the kernel as it was built, and after a checkpoint was loaded the loaded
    one. At inference this is Dense. Source: Lee, Cho, Kang 2020, "Mixout", https://arxiv.org/abs/1909.11299.

    Args:
        units: As in Dense.
        mixout: The probability of the prior, 0 <= mixout < 1. Defaults to 0.
        seed: Defaults to a random one.

    Example:

    >>> layer = MixoutDense(3, mixout=0.5)
    >>> tuple(layer(ops.ones((2, 4)), training=True).shape)
    (2, 3)
    """

    def __init__(self, units, mixout=0.0, seed=None, **kwargs):
        super().__init__(units, **kwargs)
        if not 0 <= mixout < 1:
            raise ValueError(f"`mixout` must be a probability, 0 <= mixout < 1. Received: mixout={mixout}")
        self.mixout = mixout
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def build(self, input_shape):
        super().build(input_shape)
        self.prior = self.add_weight(
            name="prior",
            shape=self.kernel.shape,
            initializer=lambda shape, dtype: ops.cast(ops.copy(ops.convert_to_tensor(self.kernel)), dtype),
            trainable=False,
        )

    @property
    def variable_serialization_spec(self):
        """What Dense saves, and the prior."""
        return {mode: [*names, "prior"] for mode, names in super().variable_serialization_spec.items()}

    def call(self, inputs, training=False):
        if not training or not self.mixout:
            return super().call(inputs)
        ones = ops.ones((self.kernel.shape[0], 1), dtype=self.compute_dtype)
        kept = keras.random.dropout(ones, self.mixout, seed=self.seed_generator)  # mask / (1 - mixout)
        return self._project(inputs, self.prior + kept * (self.kernel - self.prior))

    def get_config(self):
        return {**super().get_config(), "mixout": self.mixout, "seed": self.seed}


@register
class TruncatedNormal(keras.initializers.Initializer):
    """A normal distribution cut at two standard deviations, drawn by NumPy.

    As `keras.initializers.TruncatedNormal`, but it is cut on every backend (on torch Keras lets a few values through),
    compiles nothing, and needs no memory beside the result: for the 100 million weights of a BERT that is felt.

    Args:
        stddev: The standard deviation before the cut. Defaults to 0.02, BERT's.
        seed: Defaults to a fresh one per instance, out of Python's `random`, as in Keras.

    Example:

    >>> float(ops.max(ops.abs(TruncatedNormal(0.02)((100, 100))))) <= 0.04
    True
    """

    def __init__(self, stddev=0.02, seed=None):
        self.stddev = stddev
        self.seed = seed
        self._seed = random.randrange(2**32) if seed is None else seed

    def __call__(self, shape, dtype=None):
        rng = np.random.default_rng(self._seed)
        values = rng.standard_normal(shape, dtype="float32")
        while (outside := np.abs(values) > 2).any():
            values[outside] = rng.standard_normal(outside.sum(), dtype="float32")
        values *= self.stddev
        return ops.convert_to_tensor(values, dtype=dtype or keras.config.floatx())

    def get_config(self):
        return {"stddev": self.stddev, "seed": self.seed}


def dense(units, mixout=0.0, **kwargs):
    """A Dense layer, with mixout where there is some."""
    return MixoutDense(units, mixout=mixout, **kwargs) if mixout else Dense(units, **kwargs)


def fresh(initializer):
    """A copy of an initializer with a seed of its own: one shared unseeded instance would make query = key = value."""
    config = initializer.get_config()
    return initializer.from_config({**config, "seed": None} if "seed" in config else config)


@register
class MultiHeadAttention(keras.layers.Layer):
    """Self-attention with many heads: `(batch, time, hidden)` to `(batch, time, out_dim)`.

    Masked positions are not attended to; they attend themselves like any other (as in Google's BERT). Without
    attention dropout it runs on the fused attention of the backend where that exists.

    Args:
        heads: The number of heads.
        head_size: The width of a head's value.
        out_dim: The width of the output. Defaults to `heads * head_size`.
        key_size: The width of a head's query and key. Defaults to `head_size`.
        attention_dropout: The dropout rate of the attention weights. Defaults to 0.
        mixout: See `MixoutDense`. Defaults to 0.
        kernel_initializer: Defaults to glorot_uniform; each kernel draws its own values.

    The input is the hidden states, or a list of them and relative positions `(time, time, key_size)`, which are added
    to keys and values (NEZHA; `key_size` must be `head_size` then).

    Example:

    >>> tuple(MultiHeadAttention(heads=2, head_size=3)(ops.ones((1, 4, 6))).shape)
    (1, 4, 6)
    """

    def __init__(
        self,
        heads,
        head_size,
        out_dim=None,
        key_size=None,
        attention_dropout=0.0,
        mixout=0.0,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.heads = heads
        self.head_size = head_size
        self.out_dim = out_dim or heads * head_size
        self.key_size = key_size or head_size
        self.attention_dropout = attention_dropout
        self.mixout = mixout
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.query = self._dense(heads * self.key_size, "query")
        self.key = self._dense(heads * self.key_size, "key")
        self.value = self._dense(heads * head_size, "value")
        self.output_dense = self._dense(self.out_dim, "output")
        self.dropout = keras.layers.Dropout(attention_dropout, dtype=self.dtype_policy, name="dropout")
        self.supports_masking = True

    def _dense(self, units, name):
        initializer = fresh(self.kernel_initializer)
        return dense(units, self.mixout, kernel_initializer=initializer, dtype=self.dtype_policy, name=name)

    def build(self, input_shape):
        shape = input_shape[0] if isinstance(input_shape[0], (list, tuple)) else input_shape
        for projection in (self.query, self.key, self.value):
            projection.build(shape)
        self.output_dense.build((*shape[:-1], self.heads * self.head_size))

    def call(self, inputs, mask=None, training=False):
        hidden, positions = inputs if isinstance(inputs, (list, tuple)) else (inputs, None)
        mask = mask[0] if isinstance(mask, (list, tuple)) else mask
        query = self._heads(self.query(hidden, training=training), self.key_size)  # (batch, time, heads, size)
        key = self._heads(self.key(hidden, training=training), self.key_size)
        value = self._heads(self.value(hidden, training=training), self.head_size)
        mask = None if mask is None else mask[:, None, None, :]  # (batch, heads, query, key)
        if positions is None and self.key_size == self.head_size and not (training and self.attention_dropout):
            context = ops.dot_product_attention(query, key, value, mask=mask, scale=self.key_size**-0.5)
        else:
            context = self._attend(query, key, value, mask, positions, training)
        context = ops.reshape(context, (*ops.shape(hidden)[:2], self.heads * self.head_size))
        return self.output_dense(context, training=training)

    def _heads(self, projected, size):
        return ops.reshape(projected, (*ops.shape(projected)[:2], self.heads, size))

    def _attend(self, query, key, value, mask, positions, training):
        scores = ops.einsum("bjhd,bkhd->bhjk", query, key)
        if positions is not None:
            scores = scores + ops.einsum("bjhd,jkd->bhjk", query, positions)
        scores = scores * self.key_size**-0.5
        if mask is not None:
            scores = ops.where(mask, scores, ops.cast(MASKED_SCORE[self.compute_dtype], scores.dtype))
        weights = self.dropout(ops.softmax(scores), training=training)  # (batch, heads, query, key)
        context = ops.einsum("bhjk,bkhd->bjhd", weights, value)
        if positions is not None:
            context = context + ops.einsum("bhjk,jkd->bjhd", weights, positions)
        return context

    def compute_mask(self, inputs, mask=None):
        return mask[0] if isinstance(mask, (list, tuple)) else mask

    def compute_output_shape(self, input_shape):
        shape = input_shape[0] if isinstance(input_shape[0], (list, tuple)) else input_shape
        return (*shape[:-1], self.out_dim)

    def get_config(self):
        return {
            **super().get_config(),
            "heads": self.heads,
            "head_size": self.head_size,
            "out_dim": self.out_dim,
            "key_size": self.key_size,
            "attention_dropout": self.attention_dropout,
            "mixout": self.mixout,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }


@register
class FeedForward(keras.layers.Layer):
    """Two Dense layers, the first with an activation: `(batch, time, hidden)` to the same shape.

    Args:
        units: The width between the two.
        activation: Of the first. Defaults to "gelu" (by erf).
        mixout: See `MixoutDense`. Defaults to 0.
        kernel_initializer: Defaults to glorot_uniform; each kernel draws its own values.

    Example:

    >>> tuple(FeedForward(8)(ops.ones((1, 4, 6))).shape)
    (1, 4, 6)
    """

    def __init__(self, units, activation="gelu", mixout=0.0, kernel_initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.activation = keras.activations.get(activation)
        self.mixout = mixout
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.intermediate = self._dense(units, "intermediate", activation=self.activation)
        self.supports_masking = True

    def _dense(self, units, name, **kwargs):
        initializer = fresh(self.kernel_initializer)
        return dense(units, self.mixout, kernel_initializer=initializer, dtype=self.dtype_policy, name=name, **kwargs)

    def build(self, input_shape):
        self.intermediate.build(input_shape)
        self.output_dense = self._dense(input_shape[-1], "output")
        self.output_dense.build((*input_shape[:-1], self.units))

    def call(self, inputs, training=False):
        return self.output_dense(self.intermediate(inputs, training=training), training=training)

    def compute_output_shape(self, input_shape):
        return tuple(input_shape)

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "activation": keras.activations.serialize(self.activation),
            "mixout": self.mixout,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }


@register
class FirstToken(keras.layers.Layer):
    """The hidden state of the first token, [CLS]: `(batch, time, hidden)` to `(batch, hidden)`, without a mask."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, inputs):
        return inputs[:, 0]

    def compute_mask(self, inputs, mask=None):
        return None

    def compute_output_shape(self, input_shape):
        return (input_shape[0], *input_shape[2:])


@register
class BiasAdd(keras.layers.Layer):
    """Adds a trained vector along the last axis."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, input_shape):
        self.bias = self.add_weight(name="bias", shape=(input_shape[-1],), initializer="zeros")

    def call(self, inputs):
        return inputs + self.bias

    def compute_output_shape(self, input_shape):
        return tuple(input_shape)


@register
class LayerPooling(keras.layers.Layer):
    """One sequence of hidden states out of those of several layers, as `output_layers=[...]` gives them.

    Args:
        mode: "concat" along the last axis, "mean", "max", or "weighted": a trained softmax over the layers, which
            starts as their mean. Defaults to "concat".
        layers: Which of the inputs to take, by index; negative ones count from the end. Defaults to all.

    Example:

    >>> states = [ops.zeros((1, 2, 3)), ops.ones((1, 2, 3)), ops.ones((1, 2, 3))]
    >>> float(LayerPooling(mode="mean", layers=[0, -1])(states)[0, 0, 0])
    0.5
    """

    MODES = ("concat", "max", "mean", "weighted")

    def __init__(self, mode="concat", layers=None, **kwargs):
        super().__init__(**kwargs)
        if mode not in self.MODES:
            raise ValueError(f"`mode` must be one of {self.MODES}. Received: mode={mode!r}")
        if layers is not None and not list(layers):
            raise ValueError("`layers` must name at least one layer. Received: layers=[]")
        self.mode = mode
        self.layers = None if layers is None else [int(index) for index in layers]
        self.supports_masking = True

    def build(self, input_shape):
        if not isinstance(input_shape[0], (list, tuple)):
            raise ValueError(f"`LayerPooling` needs a list of hidden states. Received: one of shape {input_shape}")
        count = len(input_shape)
        if any(not -count <= index < count for index in self.layers or []):
            raise ValueError(f"`layers` must be indices of the {count} inputs. Received: layers={self.layers}")
        if self.mode == "weighted":
            chosen = len(self.layers or input_shape)
            self.layer_weights = self.add_weight(name="layer_weights", shape=(chosen,), initializer="zeros")

    def call(self, inputs):
        states = inputs if self.layers is None else [inputs[index] for index in self.layers]
        if self.mode == "concat":
            return ops.concatenate(states, axis=-1)
        states = ops.stack(states, axis=-1)  # (batch, time, hidden, layers)
        if self.mode == "weighted":
            return ops.sum(states * ops.exp(self.layer_weights - ops.logsumexp(self.layer_weights)), axis=-1)
        return ops.max(states, axis=-1) if self.mode == "max" else ops.mean(states, axis=-1)

    def compute_mask(self, inputs, mask=None):
        return mask[0] if mask else None

    def compute_output_shape(self, input_shape):
        chosen = input_shape if self.layers is None else [input_shape[index] for index in self.layers]
        width = sum(shape[-1] for shape in chosen) if self.mode == "concat" else chosen[0][-1]
        return (*chosen[0][:-1], width)

    def get_config(self):
        return {**super().get_config(), "mode": self.mode, "layers": self.layers and list(self.layers)}

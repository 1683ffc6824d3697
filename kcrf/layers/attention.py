"""The two halves of a transformer layer: self-attention and the feed-forward network."""

from typing import Any

from kcrf.backend import DirectCalls, fused_attention, fuses_attention, keras, ops
from kcrf.layers.dense import Dropout, config_of, dense, fresh

MASKED_SCORE = {"float16": -3e4, "bfloat16": -1e9, "float32": -1e9, "float64": -1e9}  # exp of it is 0
register = keras.saving.register_keras_serializable(package="kcrf")


def _dense(layer: Any, units: int, name: str, **options: Any) -> Any:
    options |= {"kernel_initializer": fresh(layer.kernel_initializer), "dtype": layer.dtype_policy}
    return dense(units, layer.mixout, name=name, **options)


@register
class MultiHeadAttention(DirectCalls, keras.layers.Layer):
    """Multi-head self-attention: `(batch, time, hidden)` to `(batch, time, out_dim)`.

    Keys at masked positions are ignored; queries there are not, as in Google's BERT. The input may be a list of hidden
    states and relative positions `(time, time, key_size)`, which are added to keys and values (NEZHA).

    >>> tuple(MultiHeadAttention(heads=2, head_size=3)(ops.ones((1, 4, 6))).shape)
    (1, 4, 6)
    """

    def __init__(
        self,
        heads: int,
        head_size: int,
        out_dim: int | None = None,
        key_size: int | None = None,
        attention_dropout: float = 0.0,
        mixout: float = 0.0,
        kernel_initializer: Any = "glorot_uniform",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.heads = heads
        self.head_size = head_size
        self.out_dim = out_dim or heads * head_size
        self.key_size = key_size or head_size
        self.attention_dropout = attention_dropout
        self.mixout = mixout
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.query = _dense(self, heads * self.key_size, "query")
        self.key = _dense(self, heads * self.key_size, "key")
        self.value = _dense(self, heads * head_size, "value")
        self.output_dense = _dense(self, self.out_dim, "output")
        self.dropout = Dropout(attention_dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, input_shape: Any) -> None:
        shape = input_shape[0] if isinstance(input_shape[0], (list, tuple)) else input_shape
        for projection in (self.query, self.key, self.value):
            projection.build(shape)
        self.output_dense.build((*shape[:-1], self.heads * self.head_size))

    def call(self, inputs: Any, mask: Any = None, training: bool = False) -> Any:
        hidden, positions = inputs if isinstance(inputs, (list, tuple)) else (inputs, None)
        mask = mask[0] if isinstance(mask, (list, tuple)) else mask
        query, key, value = (part(hidden, training=training) for part in (self.query, self.key, self.value))
        dropout = self.attention_dropout if training else 0.0
        if positions is None and self.key_size == self.head_size and fuses_attention(query, training, dropout):
            context = fused_attention(query, key, value, self.heads, mask, MASKED_SCORE[self.compute_dtype], dropout)
        else:
            context = self._attend(query, key, value, mask, positions, training)
        return self.output_dense(context, training=training)

    def _attend(self, query: Any, key: Any, value: Any, mask: Any, positions: Any, training: bool) -> Any:
        sized = ((query, self.key_size), (key, self.key_size), (value, self.head_size))
        query, key, value = (ops.reshape(x, (*ops.shape(x)[:2], self.heads, n)) for x, n in sized)
        scores = ops.einsum("bjhd,bkhd->bhjk", query, key)
        if positions is not None:
            scores = scores + ops.einsum("bjhd,jkd->bhjk", query, positions)
        scores = scores * self.key_size**-0.5
        if mask is not None:
            lowest = ops.cast(MASKED_SCORE[self.compute_dtype], scores.dtype)
            scores = ops.where(mask[:, None, None, :], scores, lowest)
        weights = self.dropout(ops.softmax(scores), training=training)  # (batch, heads, query, key)
        context = ops.einsum("bhjk,bkhd->bjhd", weights, value)
        if positions is not None:
            context = context + ops.einsum("bhjk,jkd->bjhd", weights, positions)
        return ops.reshape(context, (*ops.shape(context)[:2], self.heads * self.head_size))

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return mask[0] if isinstance(mask, (list, tuple)) else mask

    def compute_output_shape(self, input_shape: Any) -> Any:
        shape = input_shape[0] if isinstance(input_shape[0], (list, tuple)) else input_shape
        return (*shape[:-1], self.out_dim)

    def get_config(self) -> dict[str, Any]:
        names = ("heads", "head_size", "out_dim", "key_size", "attention_dropout", "mixout", "kernel_initializer")
        return {**super().get_config(), **config_of(self, *names)}


@register
class FeedForward(DirectCalls, keras.layers.Layer):
    """Two Dense layers, the first with an activation: `(batch, time, hidden)` to the same shape.

    >>> tuple(FeedForward(8)(ops.ones((1, 4, 6))).shape)
    (1, 4, 6)
    """

    def __init__(
        self,
        units: int,
        activation: Any = "gelu",
        mixout: float = 0.0,
        kernel_initializer: Any = "glorot_uniform",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.units = units
        self.activation = keras.activations.get(activation)
        self.mixout = mixout
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.intermediate = _dense(self, units, "intermediate", activation=self.activation)
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        self.intermediate.build(input_shape)
        self.output_dense = _dense(self, input_shape[-1], "output")
        self.output_dense.build((*input_shape[:-1], self.units))

    def call(self, inputs: Any, training: Any = None) -> Any:
        return self.output_dense(self.intermediate(inputs, training=training), training=training)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return tuple(input_shape)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **config_of(self, "units", "activation", "mixout", "kernel_initializer")}

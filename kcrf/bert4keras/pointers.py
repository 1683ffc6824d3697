"""Global pointers of bert4keras: a score for each pair of positions and each kind of span or relation.

Source: Su Jianlin, kexue.fm/archives/8373 and, for the efficient one, 8877.
"""

from typing import Any

import numpy as np

from kcrf.backend import Layer, keras, ops
from kcrf.layers.dense import config_of, fresh

register = keras.saving.register_keras_serializable(package="kcrf")


@register
class GlobalPointer(Layer):
    """Scores of all spans: `(batch, time, hidden)` to `(batch, heads, time, time)`, from first to last position.

    A span is predicted where its score is above 0. Masked positions have the score -inf. Train it with
    `kcrf.backend.multilabel_categorical_crossentropy` or its sparse form, over all pairs of a head.

    >>> tuple(GlobalPointer(heads=2, head_size=4)(ops.ones((1, 5, 3))).shape)
    (1, 2, 5, 5)
    """

    def __init__(
        self,
        heads: int,
        head_size: int,
        RoPE: bool = True,  # noqa: N803 (bert4keras' name)
        use_bias: bool = True,
        tril_mask: bool = True,
        kernel_initializer: Any = "lecun_normal",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if head_size % 2:
            raise ValueError(f"`head_size` must be even. Received: head_size={head_size}")
        self.heads, self.head_size = heads, head_size
        self.RoPE, self.use_bias, self.tril_mask = RoPE, use_bias, tril_mask
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        self.dense = self._dense(2 * self.head_size * self.heads, "dense", input_shape)
        self.built = True

    def _dense(self, units: int, name: str, input_shape: Any) -> Any:
        options = {"use_bias": self.use_bias, "kernel_initializer": fresh(self.kernel_initializer)}
        layer = keras.layers.Dense(units, name=name, dtype=self.dtype_policy, **options)
        layer.build(tuple(input_shape))
        return layer

    def call(self, inputs: Any, mask: Any = None) -> Any:
        x = self.dense(inputs)
        x = ops.reshape(x, (*ops.shape(x)[:2], self.heads, 2 * self.head_size))
        queries, keys = (self._rotated(half) for half in (x[..., : self.head_size], x[..., self.head_size :]))
        return self._masked(ops.einsum("bmhd,bnhd->bhmn", queries, keys) / self.head_size**0.5, mask)

    def _rotated(self, x: Any) -> Any:
        """Queries or keys `(batch, time, ..., head_size)`, each pair of numbers rotated by the position."""
        if not self.RoPE:
            return x
        rates = ops.convert_to_tensor(10000.0 ** (-np.arange(0, self.head_size, 2) / self.head_size), "float32")
        length = x.shape[1] or ops.shape(x)[1]
        angles = ops.cast(ops.arange(length), "float32")[:, None] * rates  # (time, head_size / 2)
        shape = (1, length, *[1] * (len(x.shape) - 3), self.head_size // 2)
        cos, sin = (ops.cast(ops.reshape(f(angles), shape), x.dtype) for f in (ops.cos, ops.sin))
        even, odd = x[..., ::2], x[..., 1::2]
        pairs = ops.stack([even * cos - odd * sin, odd * cos + even * sin], axis=-1)
        return ops.reshape(pairs, ops.shape(x))

    def _masked(self, scores: Any, mask: Any) -> Any:
        """The scores with -inf at masked positions and, with `tril_mask`, below the diagonal."""
        length = ops.shape(scores)[-1]
        allowed = None if mask is None else mask[:, None, :, None] & mask[:, None, None, :]
        if self.tril_mask:
            positions = ops.arange(length)
            forward = positions[:, None] <= positions[None, :]
            allowed = forward if allowed is None else allowed & forward
        if allowed is None:
            return scores
        return ops.where(allowed, scores, ops.cast(-np.inf, scores.dtype))

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        return None

    def compute_output_shape(self, input_shape: Any) -> Any:
        return (input_shape[0], self.heads, input_shape[1], input_shape[1])

    def get_config(self) -> dict[str, Any]:
        names = ("heads", "head_size", "RoPE", "use_bias", "tril_mask", "kernel_initializer")
        return {**super().get_config(), **config_of(self, *names)}


@register
class EfficientGlobalPointer(GlobalPointer):
    """A `GlobalPointer` whose heads share queries and keys, and differ in a score of each first and last position."""

    def build(self, input_shape: Any) -> None:
        self.p_dense = self._dense(2 * self.head_size, "p_dense", input_shape)
        self.q_dense = self._dense(2 * self.heads, "q_dense", (*input_shape[:-1], 2 * self.head_size))
        self.built = True

    def call(self, inputs: Any, mask: Any = None) -> Any:
        x = self.p_dense(inputs)
        queries, keys = self._rotated(x[..., ::2]), self._rotated(x[..., 1::2])
        scores = ops.einsum("bmd,bnd->bmn", queries, keys) / self.head_size**0.5
        ends = ops.transpose(self.q_dense(x), (0, 2, 1)) / 2  # (batch, 2 heads, time)
        return self._masked(scores[:, None] + ends[:, ::2, None] + ends[:, 1::2, :, None], mask)

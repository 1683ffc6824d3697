"""Layer normalization whose scale and offset may depend on a second input."""

from typing import Any

from kcrf.backend import DirectCalls, fused_norm, keras, ops
from kcrf.layers.dense import config_of

register = keras.saving.register_keras_serializable(package="kcrf")


@register
class LayerNormalization(DirectCalls, keras.layers.LayerNormalization):
    """Keras' layer normalization; with `conditional=True`, a vector per example changes scale and offset.

    The input is then a list: hidden states `(batch, time, hidden)` and conditions `(batch, size)`. Linear maps of the
    condition, zero at the start, are added to scale and offset; with `hidden_units` behind a dense layer of this size.
    Source: Su Jianlin, kexue.fm/archives/7124.

    >>> layer = LayerNormalization(conditional=True)
    >>> tuple(layer([ops.ones((2, 5, 4)), ops.ones((2, 3))]).shape)
    (2, 5, 4)
    """

    def __init__(
        self,
        conditional: bool = False,
        hidden_units: int | None = None,
        hidden_activation: Any = "linear",
        hidden_initializer: Any = "glorot_uniform",
        **kwargs: Any,
    ) -> None:
        super().__init__(**({"epsilon": 1e-7} if conditional else {}) | kwargs)
        self.conditional = conditional
        self.hidden_units = hidden_units
        self.hidden_activation = keras.activations.get(hidden_activation)
        self.hidden_initializer = keras.initializers.get(hidden_initializer)

    def build(self, input_shape: Any) -> None:
        if not self.conditional:
            return super().build(input_shape)
        if len(input_shape) != 2 or not hasattr(input_shape[0], "__len__"):
            raise ValueError(f"`conditional=True` needs [hidden states, conditions]. Received: shape={input_shape}")
        shape, condition = map(tuple, input_shape)
        super().build(shape)
        if self.hidden_units:
            options = {"activation": self.hidden_activation, "kernel_initializer": self.hidden_initializer}
            self.hidden_dense = self._dense(self.hidden_units, "hidden_dense", condition, **options)
            condition = (*condition[:-1], self.hidden_units)
        if self.center:
            self.beta_dense = self._dense(shape[-1], "beta_dense", condition, kernel_initializer="zeros")
        if self.scale:
            self.gamma_dense = self._dense(shape[-1], "gamma_dense", condition, kernel_initializer="zeros")
        self.built = True

    def _dense(self, units: int, name: str, input_shape: Any, **options: Any) -> Any:
        layer = keras.layers.Dense(units, use_bias=False, name=name, dtype=self.dtype_policy, **options)
        layer.build(input_shape)
        return layer

    def call(self, inputs: Any) -> Any:
        if not self.conditional:
            is_usual = self.axis in (-1, [-1]) and not self.rms_scaling
            fused = fused_norm(inputs, self.gamma, self.beta, self.epsilon) if is_usual else None
            return super().call(inputs) if fused is None else fused
        hidden, condition = inputs
        condition = self.hidden_dense(condition) if self.hidden_units else condition
        inner = [1] * (len(hidden.shape) - 2)
        condition = ops.reshape(condition, (ops.shape(condition)[0], *inner, condition.shape[-1]))
        mean = ops.mean(hidden, axis=-1, keepdims=True)
        variance = ops.mean(ops.square(hidden - mean), axis=-1, keepdims=True)
        x = (hidden - mean) / ops.sqrt(variance + self.epsilon)
        if self.scale:
            x = x * (self.gamma + self.gamma_dense(condition))
        return x + (self.beta + self.beta_dense(condition)) if self.center else x

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return mask[0] if self.conditional and mask is not None else mask

    def compute_output_shape(self, input_shape: Any) -> Any:
        return tuple(input_shape[0] if self.conditional else input_shape)

    def get_config(self) -> dict[str, Any]:
        names = ("conditional", "hidden_units", "hidden_activation", "hidden_initializer")
        return {**super().get_config(), **config_of(self, *names)}

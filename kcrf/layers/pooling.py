"""Layers on top of an encoder: its first token, or a pooling of several of its hidden layers."""

from typing import Any, Unpack

from kcrf.backend import keras, ops
from kcrf.backend.hints import LayerOptions

register = keras.saving.register_keras_serializable(package="kcrf")


@register
class FirstToken(keras.layers.Layer):
    """The hidden state of the first token, [CLS]: `(batch, time, hidden)` to `(batch, hidden)`, without a mask."""

    def call(self, inputs: Any) -> Any:
        return inputs[:, 0]

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        return None

    def compute_output_shape(self, input_shape: Any) -> Any:
        return (input_shape[0], *input_shape[2:])


@register
class LayerPooling(keras.layers.Layer):
    """Combines the hidden states of several layers, as `output_layers=[...]` returns them.

    Args:
        mode: "concat", "mean", "max", or "weighted": a mean with trained softmax weights. Defaults to "concat".
        layers: Which of the inputs to take, by index; negative ones count from the end. Defaults to all.

    >>> states = [ops.zeros((1, 2, 3)), ops.ones((1, 2, 3)), ops.ones((1, 2, 3))]
    >>> float(LayerPooling(mode="mean", layers=[0, -1])(states)[0, 0, 0])
    0.5
    """

    MODES = ("concat", "max", "mean", "weighted")

    def __init__(self, mode: str = "concat", layers: Any = None, **kwargs: Unpack[LayerOptions]) -> None:
        super().__init__(**kwargs)
        if mode not in self.MODES:
            raise ValueError(f"`mode` must be one of {self.MODES}. Received: mode={mode!r}")
        if layers is not None and not list(layers):
            raise ValueError("`layers` must name at least one layer. Received: layers=[]")
        self.mode = mode
        self.layers = None if layers is None else [int(index) for index in layers]

    def build(self, input_shape: Any) -> None:
        if not isinstance(input_shape[0], (list, tuple)):
            raise ValueError(f"`LayerPooling` needs a list of hidden states. Received: one of shape {input_shape}")
        count = len(input_shape)
        if any(not -count <= index < count for index in self.layers or []):
            raise ValueError(f"`layers` must be indices of the {count} inputs. Received: layers={self.layers}")
        if self.mode == "weighted":
            chosen = len(self.layers or input_shape)
            self.layer_weights = self.add_weight(name="layer_weights", shape=(chosen,), initializer="zeros")

    def call(self, inputs: Any) -> Any:
        states = inputs if self.layers is None else [inputs[index] for index in self.layers]
        if self.mode == "concat":
            return ops.concatenate(states, axis=-1)
        states = ops.stack(states, axis=-1)  # (batch, time, hidden, layers)
        if self.mode == "weighted":
            return ops.sum(states * ops.exp(self.layer_weights - ops.logsumexp(self.layer_weights)), axis=-1)
        return ops.max(states, axis=-1) if self.mode == "max" else ops.mean(states, axis=-1)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return mask[0] if mask else None

    def compute_output_shape(self, input_shape: Any) -> Any:
        chosen = input_shape if self.layers is None else [input_shape[index] for index in self.layers]
        width = sum(shape[-1] for shape in chosen) if self.mode == "concat" else chosen[0][-1]
        return (*chosen[0][:-1], width)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "mode": self.mode, "layers": self.layers and list(self.layers)}

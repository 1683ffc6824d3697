"""Embeddings of tokens and positions, in the layers of bert4keras."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kcrf.backend import DirectCalls, keras, ops
from kcrf.layers.dense import config_of

HIERARCHY = 0.4  # the weight of the coarse position in bert4keras

register = keras.saving.register_keras_serializable(package="kcrf")


def padding_mask(tokens: Any, padding_id: int) -> Any:
    """Whether each token is not padding, `(batch, time)` bool. In a row of padding alone, the first position is not."""
    ones = ops.ones_like(tokens)
    real = ops.not_equal(tokens, padding_id) if padding_id else ops.cast(tokens, "bool")  # a number is copied to CUDA
    is_empty = ops.logical_not(ops.any(real, axis=1, keepdims=True))
    is_first = ops.equal(ops.cumsum(ones, axis=1), ones)  # a slice cannot be rematerialized on JAX
    return ops.logical_or(real, ops.logical_and(is_empty, is_first))


@dataclass
class EncoderRecord:
    """Facts about an encoder, kept by its token embedding; only `config` is saved with models."""

    config: dict
    names: dict | None = None
    report: object = None
    tokenizer: Sequence[Path] = ()  # its files


@register
class Embedding(DirectCalls, keras.layers.Embedding):
    """Token embeddings; `layer(hidden, reverse=True)` multiplies by the transposed table: hidden states to scores.

    With `mask_zero=True`, not the default, `padding_id` is masked; in a row of padding alone, all but the first
    position. `transformer_config`, the configuration of the encoder, is saved with the model for `save_pretrained` and
    `reinitialize`. The other arguments are as for `keras.layers.Embedding`.

    >>> embed = Embedding(input_dim=10, output_dim=4)
    >>> hidden = embed(np.array([[2, 3, 0]]))
    >>> tuple(embed(hidden, reverse=True).shape)
    (1, 3, 10)
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        transformer_config: dict[str, Any] | None = None,
        padding_id: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(input_dim, output_dim, **kwargs)
        self.padding_id = padding_id
        self.encoder_record = EncoderRecord(dict(transformer_config)) if transformer_config else None

    def call(self, inputs: Any, reverse: bool = False) -> Any:
        if reverse:
            return ops.matmul(inputs, ops.transpose(ops.cast(self.embeddings, inputs.dtype)))
        return super().call(inputs)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        if len(inputs.shape) != 2:  # hidden states of a reverse call
            return mask
        return padding_mask(inputs, self.padding_id) if self.mask_zero else None

    def compute_output_shape(self, input_shape: Any, reverse: bool = False) -> Any:
        return (*input_shape[:-1], self.input_dim) if reverse else (*input_shape, self.output_dim)

    def compute_output_spec(self, inputs: Any, reverse: bool = False) -> Any:
        return keras.KerasTensor(self.compute_output_shape(inputs.shape, reverse), dtype=self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        config = dict(self.encoder_record.config) if self.encoder_record else None
        return {**super().get_config(), "transformer_config": config, "padding_id": self.padding_id}


class _EmbeddingTable(DirectCalls, keras.layers.Layer):
    """Base of the layers that add rows of a trained table to their inputs."""

    def __init__(self, input_dim: int, output_dim: int, embeddings_initializer: Any = "zeros", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.input_dim = input_dim
        self.output_dim = output_dim
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        self.embeddings = self.add_weight(
            name="embeddings", shape=(self.input_dim, self.output_dim), initializer=self.embeddings_initializer
        )

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **config_of(self, "input_dim", "output_dim", "embeddings_initializer")}


@register
class PositionEmbedding(_EmbeddingTable):
    """Adds one trained vector per position.

    `hierarchical` makes positions beyond the table from two in it, a coarse and a fine one; a number is the weight of
    the coarse one, True means 0.4 (https://kexue.fm/archives/7947). With `custom_position_ids` a second input `(batch,
    time)` holds the positions.
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        hierarchical: bool | float | None = None,
        custom_position_ids: bool = False,
        padding_id: int | None = None,
        embeddings_initializer: Any = "zeros",
        **kwargs: Any,
    ) -> None:
        super().__init__(input_dim, output_dim, embeddings_initializer, **kwargs)
        self.hierarchical = hierarchical
        self.custom_position_ids = custom_position_ids
        self.padding_id = padding_id

    def call(self, inputs: Any, mask: Any = None) -> Any:
        hidden, positions = inputs if self.custom_position_ids else (inputs, None)
        first = 0 if self.padding_id is None else self.padding_id + 1  # the position of the first token
        length, longest = hidden.shape[1] or ops.shape(hidden)[1], self.input_dim - first
        if positions is None and not self.hierarchical and isinstance(length, int) and length > longest:
            raise ValueError(
                f"`{self.name}` has {longest} positions; hierarchical_position=True makes more of them. "
                f"Received: length={length}"
            )
        if positions is None and self.padding_id is not None:
            real = ops.ones(ops.shape(hidden)[:2], "int32") if mask is None else ops.cast(mask, "int32")
            positions = ops.cumsum(real, axis=1) * real + self.padding_id  # (batch, time)
        elif positions is None and not self.hierarchical:
            return hidden + ops.convert_to_tensor(self.embeddings)[:length]
        positions = ops.arange(length) if positions is None else ops.cast(positions, "int32")
        return hidden + self._vectors(positions)

    def _vectors(self, positions: Any) -> Any:
        if not self.hierarchical:
            return ops.take(self.embeddings, positions, axis=0)
        share = HIERARCHY if self.hierarchical is True else self.hierarchical
        base = (self.embeddings - share * self.embeddings[:1]) / (1 - share)
        coarse, fine = positions // self.input_dim, positions % self.input_dim
        return share * ops.take(base, coarse, axis=0) + (1 - share) * ops.take(base, fine, axis=0)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return mask[0] if self.custom_position_ids and mask else mask

    def compute_output_shape(self, input_shape: Any) -> Any:
        return tuple(input_shape[0] if self.custom_position_ids else input_shape)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **config_of(self, "hierarchical", "custom_position_ids", "padding_id")}


@register
class FirstRowEmbedding(_EmbeddingTable):
    """Adds the first row of a table to every token: ERNIE's embedding of pretraining task 0, RoBERTa's only segment."""

    def call(self, inputs: Any) -> Any:
        return inputs + ops.convert_to_tensor(self.embeddings)[0]

    def compute_output_shape(self, input_shape: Any) -> Any:
        return tuple(input_shape)


@register
class RelativePositionEmbedding(keras.layers.Layer):
    """The fixed relative positions of NEZHA, `(time, time, output_dim)`: `[j, k]` for query j and key k.

    Larger distances are clipped to `max_distance`. Source: Wei et al. 2019, https://arxiv.org/abs/1909.00204.
    """

    def __init__(self, output_dim: int, max_distance: int = 64, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if output_dim % 2:
            raise ValueError(f"`output_dim` must be even: sines and cosines come in pairs. Received: {output_dim}")
        self.output_dim = output_dim
        self.max_distance = max_distance
        angles = np.arange(2 * max_distance + 1)[:, None] / 10000 ** (np.arange(0, output_dim, 2) / output_dim)
        self._table = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(len(angles), output_dim)

    def call(self, inputs: Any) -> Any:
        positions = ops.arange(inputs.shape[1] or ops.shape(inputs)[1])
        distances = ops.clip(positions[None, :] - positions[:, None], -self.max_distance, self.max_distance)
        table = ops.convert_to_tensor(self._table, dtype=self.compute_dtype)
        return ops.take(table, distances + self.max_distance, axis=0)

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        return None

    def compute_output_shape(self, input_shape: Any) -> Any:
        return (input_shape[1], input_shape[1], self.output_dim)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **config_of(self, "output_dim", "max_distance")}


@register
class SinusoidalPositions(keras.layers.Layer):
    """Sines and cosines of the position (Vaswani et al., 2017), `(time, width)` for inputs `(batch, time, width)`."""

    def call(self, inputs: Any) -> Any:
        time, width = ops.shape(inputs)[1], inputs.shape[-1]
        rates = ops.exp(ops.arange(0, width, 2, dtype="float32") * (-9.210340 / width))  # log 10,000
        angles = ops.arange(time, dtype="float32")[:, None] * rates
        waves = ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=-1)
        return ops.cast(waves[:, :width], inputs.dtype)

    def compute_output_spec(self, inputs: Any) -> Any:
        return keras.KerasTensor(inputs.shape[1:], dtype=inputs.dtype)

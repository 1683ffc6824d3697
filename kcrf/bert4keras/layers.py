"""bert4keras' `layers` under their names, and Keras' own layers."""

from typing import Any

from kcrf import layers
from kcrf.attribution import GradientTimesInput
from kcrf.backend import K, keras
from kcrf.bert4keras.absent_names import explain
from kcrf.layers import (
    ConditionalRandomField,
    EfficientGlobalPointer,
    Embedding,
    FeedForward,
    GlobalPointer,
    LayerNormalization,
    LayerPooling,
    Loss,
    MaximumEntropyMarkovModel,
    MultiHeadAttention,
    PositionEmbedding,
    RelativePositionEmbedding,
    ViterbiTags,
)
from kcrf.layers.dense import MixoutDense

_OURS = [
    "ConditionalRandomField",
    "EfficientGlobalPointer",
    "Embedding",
    "FeedForward",
    "GlobalPointer",
    "GradientTimesInput",
    "K",
    "LayerNormalization",
    "LayerPooling",
    "Loss",
    "MaximumEntropyMarkovModel",
    "MixoutDense",
    "MultiHeadAttention",
    "PositionEmbedding",
    "RelativePositionEmbedding",
    "SetLearningRate",
    "ViterbiTags",
    "keras",
]
__all__ = [*_OURS, *(name for name in dir(keras.layers) if name[0].isupper() and name not in _OURS)]


def __getattr__(name):
    """Keras' own layers."""
    if name.startswith("_") or not hasattr(keras.layers, name):
        raise explain("layers", name)
    return getattr(keras.layers, name)


def SetLearningRate(layer: Any, lamb: float, is_ada: bool = False, **kwargs: Any) -> Any:  # noqa: N802
    """A `kcrf.layers.SetLearningRate` by the arguments of the class of kexue.fm/archives/6418.

    Args:
        layer: Any Keras layer with one input.
        lamb: The learning-rate multiplier of the layer, a positive number.
        is_ada: Whether the optimizer is adaptive, as Adam is. It has no effect: the factor is `lamb` under all.

    Returns:
        The wrapped layer.

    >>> SetLearningRate(keras.layers.Dense(4), 10, True).multiplier
    10
    """
    return layers.SetLearningRate(layer, lamb, **kwargs)

"""bert4keras' `layers` under their names, and Keras' own layers."""

from typing import Any

from kcrf import layers
from kcrf.backend import K, keras
from kcrf.bert4keras.absent_names import page
from kcrf.bert4keras.attribution import GradientTimesInput
from kcrf.bert4keras.keras2 import Loss
from kcrf.bert4keras.memm import MaximumEntropyMarkovModel
from kcrf.bert4keras.pointers import EfficientGlobalPointer, GlobalPointer
from kcrf.layers import (
    ConditionalRandomField,
    Embedding,
    FeedForward,
    LayerNormalization,
    LayerPooling,
    MultiHeadAttention,
    PositionEmbedding,
    RelativePositionEmbedding,
    ViterbiTags,
)
from kcrf.layers.dense import MixoutDense

_absent = page("layers")
_OURS = (
    "ConditionalRandomField EfficientGlobalPointer Embedding FeedForward GlobalPointer GradientTimesInput K "
    "LayerNormalization LayerPooling Loss MaximumEntropyMarkovModel MixoutDense MultiHeadAttention PositionEmbedding "
    "RelativePositionEmbedding SetLearningRate ViterbiTags keras"
).split()
__all__ = [*_OURS, *(name for name in dir(keras.layers) if name[0].isupper() and name not in _OURS)]


def __getattr__(name: str) -> Any:
    """Keras' own layers."""
    if name.startswith("_") or not hasattr(keras.layers, name):
        return _absent(name)
    return getattr(keras.layers, name)


def SetLearningRate(layer: Any, lamb: float, is_ada: bool = False, **kwargs: Any) -> Any:  # noqa: N802
    """A `kcrf.layers.SetLearningRate` by the arguments of kexue.fm/archives/6418; `is_ada` has no effect.

    >>> SetLearningRate(keras.layers.Dense(4), 10, True).multiplier
    10
    """
    return layers.SetLearningRate(layer, lamb, **kwargs)

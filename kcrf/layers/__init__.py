"""Keras layers: the conditional random field, learning rates by layer, and the layers of BERT.

Importing this package registers with Keras everything that a saved model of kcrf can name: layers, losses, metrics,
optimizers and schedules. A program that loads such a model imports it first.
"""

from typing import TYPE_CHECKING

from kcrf import optimizers  # registers its classes
from kcrf.layers.attention import FeedForward, MultiHeadAttention
from kcrf.layers.crf import ConditionalRandomField, ViterbiTags
from kcrf.layers.distillation import TagDistillationLoss  # registers its classes
from kcrf.layers.embeddings import Embedding, PositionEmbedding, RelativePositionEmbedding
from kcrf.layers.learning_rates import SetLearningRate
from kcrf.layers.ngrams import NGramScores
from kcrf.layers.normalization import LayerNormalization
from kcrf.layers.pooling import LayerPooling
from kcrf.layers.transformers_encoder import TransformersEncoder
from kcrf.rates import suggest_lr_multiplier

if TYPE_CHECKING:
    from kcrf.bert4keras.keras2 import Loss as Loss
    from kcrf.bert4keras.memm import MaximumEntropyMarkovModel as MaximumEntropyMarkovModel
    from kcrf.bert4keras.pointers import EfficientGlobalPointer as EfficientGlobalPointer
    from kcrf.bert4keras.pointers import GlobalPointer as GlobalPointer
else:
    from kcrf.backend.old_names import of_layers as __getattr__

__all__ = [
    "ConditionalRandomField",
    "suggest_lr_multiplier",
    "ViterbiTags",
    "SetLearningRate",
    "NGramScores",
    "Embedding",
    "FeedForward",
    "LayerNormalization",
    "LayerPooling",
    "MultiHeadAttention",
    "PositionEmbedding",
    "RelativePositionEmbedding",
    "TransformersEncoder",
]

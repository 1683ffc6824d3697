"""Keras layers: the conditional random field, learning rates by layer, and the layers of BERT.

Importing this package registers with Keras everything that a saved model of kcrf can name: layers, losses, metrics,
optimizers and schedules. A program that loads such a model imports it first.
"""

from kcrf import optimizers  # registers its classes
from kcrf.layers.added_loss import Loss
from kcrf.layers.attention import FeedForward, MultiHeadAttention
from kcrf.layers.crf import ConditionalRandomField, ViterbiTags
from kcrf.layers.distillation import TagDistillationLoss  # registers its classes
from kcrf.layers.embeddings import Embedding, PositionEmbedding, RelativePositionEmbedding
from kcrf.layers.keras2_model import Keras2Model  # registers it
from kcrf.layers.learning_rates import SetLearningRate
from kcrf.layers.memm import MaximumEntropyMarkovModel
from kcrf.layers.ngrams import NGramScores
from kcrf.layers.normalization import LayerNormalization
from kcrf.layers.pointers import EfficientGlobalPointer, GlobalPointer
from kcrf.layers.pooling import LayerPooling
from kcrf.rates import suggest_lr_multiplier

__all__ = [
    "ConditionalRandomField",
    "EfficientGlobalPointer",
    "Embedding",
    "FeedForward",
    "GlobalPointer",
    "LayerNormalization",
    "LayerPooling",
    "Loss",
    "MaximumEntropyMarkovModel",
    "MultiHeadAttention",
    "NGramScores",
    "PositionEmbedding",
    "RelativePositionEmbedding",
    "SetLearningRate",
    "ViterbiTags",
    "suggest_lr_multiplier",
]

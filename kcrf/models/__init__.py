"""BERT and its relatives: built, loaded, saved, with bert4keras' names."""

from kcrf.models.build import Transformer, build_transformer_model
from kcrf.models.loading import LoadReport, reinitialize
from kcrf.models.names import variable_mapping
from kcrf.models.saving import save_pretrained, save_weights_as_checkpoint

__all__ = [
    "build_transformer_model",
    "save_pretrained",
    "Transformer",
    "reinitialize",
    "save_weights_as_checkpoint",
    "variable_mapping",
]

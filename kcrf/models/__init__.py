"""BERT and its relatives: built, loaded, saved, with bert4keras' names."""

from kcrf.backend import K, keras
from kcrf.bert4keras_names import explain_models as __getattr__
from kcrf.layers.keras2_model import Keras2Model
from kcrf.models.build import Model, Transformer, build_transformer_model
from kcrf.models.keras2_weights import load_bert4keras_weights
from kcrf.models.loading import LoadReport, reinitialize
from kcrf.models.names import variable_mapping
from kcrf.models.saving import save_pretrained, save_weights_as_checkpoint

__all__ = [
    "K",
    "Keras2Model",
    "LoadReport",
    "Model",
    "Transformer",
    "build_transformer_model",
    "keras",
    "load_bert4keras_weights",
    "reinitialize",
    "save_pretrained",
    "save_weights_as_checkpoint",
    "variable_mapping",
]

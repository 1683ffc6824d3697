"""bert4keras' `models` by their names, and what scripts do with models of Keras 2."""

from kcrf.backend import OLD_HOST, K, keras
from kcrf.bert4keras import keras2
from kcrf.bert4keras.absent_names import page
from kcrf.bert4keras.weights import load_bert4keras_weights
from kcrf.models import (
    LoadReport,
    Transformer,
    build_transformer_model,
    reinitialize,
    save_pretrained,
    save_weights_as_checkpoint,
    variable_mapping,
)

__getattr__ = page("models")
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

Model = keras.Model
Keras2Model = keras.Model if OLD_HOST else keras2.Keras2Model  # the `Model` of tf_keras has these habits

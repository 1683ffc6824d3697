"""Finds the encoder inside a model that contains it, by the names of its layers."""

from kcrf.backend import path_of
from kcrf.models.names import variable_mapping

__all__ = ["encoder_config", "google_names_of", "token_embedding", "variables_by_path"]

TRANSPOSED = "cls/seq_relationship/output_weights"


def token_embedding(model, prefix):
    """The layer that knows what encoder it belongs to."""
    for layer in model._flatten_layers():
        if layer.name == f"{prefix}Embedding-Token" and getattr(layer, "transformer_config", None):
            return layer
    raise ValueError(
        f"Needs a model of `build_transformer_model`. Received: none with prefix={prefix!r} in {model.name}"
    )


def encoder_config(model, prefix):
    """The configuration of the encoder in a model, a dict."""
    return token_embedding(model, prefix).transformer_config


def google_names_of(model, prefix):
    """`variable_mapping` of an encoder; bert4keras' encoders bring their own."""
    layer = token_embedding(model, prefix)
    return getattr(layer, "kcrf_google_names", None) or variable_mapping(layer.transformer_config)


def variables_by_path(model):
    """The variables of a model, a dict by path."""
    return {path_of(variable): variable for variable in model.variables}

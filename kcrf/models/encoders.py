"""Finds the encoder in a model that contains it, by the name of its token embedding."""

from kcrf.backend import path_of
from kcrf.models.names import variable_mapping

__all__ = ["checkpoint_names", "encoder_record", "variables_by_path"]


def encoder_record(model, prefix=""):
    """The `EncoderRecord` of the encoder in a model.

    Args:
        model: A model of `build_transformer_model`, or one around it, also one that Keras loaded from a file.
        prefix: The prefix of the encoder's layer names. Defaults to "".

    Raises:
        ValueError: The model has no such encoder.
    """
    for layer in model._flatten_layers():
        if layer.name == f"{prefix}Embedding-Token" and getattr(layer, "encoder_record", None) is not None:
            return layer.encoder_record
    raise ValueError(
        f"Needs a model of `build_transformer_model`. Received: none with prefix={prefix!r} in {model.name}"
    )


def checkpoint_names(record, variables):
    """The names in Google's checkpoints of those variables that belong to the encoder: a dict by path."""
    names = variable_mapping(record.config) if record.names is None else record.names
    return {path: name for path, name in names.items() if path in variables}


def variables_by_path(model):
    """The variables of a model, a dict by path."""
    return {path_of(variable): variable for variable in model.variables}

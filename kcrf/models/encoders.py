"""Finds an encoder: in a model that contains it, or its configuration and weights in a folder."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kcrf.backend import path_of
from kcrf.checkpoints.configs import has_config
from kcrf.checkpoints.open import has_checkpoint
from kcrf.models.names import variable_mapping


def encoder_record(model: Any, prefix: str = "") -> Any:
    """The `EncoderRecord` of the encoder in a model, found by the name of its token embedding."""
    layers = {id(layer): layer for layer in model._flatten_layers() if layer.name == f"{prefix}Embedding-Token"}
    records = [record for layer in layers.values() if (record := getattr(layer, "encoder_record", None)) is not None]
    if len(records) > 1:
        raise ValueError(
            "Needs one encoder with these layer names: pass the model of one of them, as `model.get_layer(name)`, or "
            f"build each with a prefix of its own. Received: {len(records)} with prefix={prefix!r} in {model.name}"
        )
    if not records:
        raise ValueError(f"Needs a model of `build_transformer_model`. Received: none with {prefix=} in {model.name}")
    return records[0]


def checkpoint_names(record: Any, variables: Any) -> dict[str, Any]:
    """The names in Google's checkpoints of those variables that belong to the encoder: a dict by path."""
    names = variable_mapping(record.config) if record.names is None else record.names
    return {path: name for path, name in names.items() if path in variables}


def variables_by_path(model: Any) -> dict[str, Any]:
    """The variables of a model, a dict by path."""
    return {path_of(variable): variable for variable in model.variables}


def complete_sources(config_path: Any, checkpoint_path: Any) -> tuple[Any, Any]:
    """The configuration and the checkpoint, each taken from the folder of the other if it is None."""
    if config_path is None and _is_folder(checkpoint_path) and has_config(checkpoint_path):
        return checkpoint_path, checkpoint_path
    if checkpoint_path is not None or config_path is None or isinstance(config_path, Mapping):
        return config_path, checkpoint_path
    if _is_folder(config_path) and has_checkpoint(config_path):
        return config_path, config_path
    return config_path, None


def _is_folder(path: Any) -> Any:
    return isinstance(path, (str, os.PathLike)) and Path(path).is_dir()

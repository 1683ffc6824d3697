"""Where an encoder's configuration and weights come from: one folder may hold both."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kcrf.checkpoints.configs import has_config
from kcrf.checkpoints.open import has_checkpoint


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

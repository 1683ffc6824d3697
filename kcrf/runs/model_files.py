"""The protocol of what a model is opened from: a run folder, or an exported file. Needs no Keras."""

from pathlib import Path
from typing import Any, Protocol

import numpy as np

from kcrf.runs.config_file import StoredRun
from kcrf.runs.settings import Settings

__all__ = ["ModelFiles"]


class ModelFiles(Protocol):
    """What a model is made of: its configuration, its vocabulary, its word vectors.

    Attributes:
        path: The folder or the file.
    """

    path: Path

    def file(self, name: str) -> Path | str:
        """What an error calls a part by its name."""

    def read_config(self) -> StoredRun:
        """The content of `config.json`."""

    def read_settings(self) -> Settings:
        """The `Settings` that the user gave."""

    def read_json(self, name: str) -> dict[str, Any]:
        """The plain values in a part by its name."""

    def read_vocab(self) -> dict[str, int]:
        """The vocabulary of the BERT, a dict from token to number."""

    def read_vectors(self) -> dict[str, np.ndarray]:
        """The arrays of the word vectors that the model reads."""

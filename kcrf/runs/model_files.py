"""The protocol of the files of a model: a run folder, or an exported file. Needs no Keras."""

from pathlib import Path
from typing import Any, Protocol

import numpy as np

from kcrf.runs.config_file import StoredRun
from kcrf.runs.settings import Settings


class ModelFiles(Protocol):
    """The files of a model: its configuration, its vocabulary and its word vectors.

    Attributes:
        path: The folder or the file.
    """

    path: Path

    def file(self, name: str) -> Path | str:
        """The path of a part of the model in error messages."""

    def read_config(self) -> StoredRun:
        """The content of `config.json`."""

    def read_settings(self) -> Settings:
        """The `Settings` of the user."""

    def read_json(self, name: str) -> dict[str, Any]:
        """The plain values in a part of the model."""

    def read_vocab(self) -> dict[str, int]:
        """The vocabulary of the BERT, a dict from token to number."""

    def read_vectors(self) -> dict[str, np.ndarray]:
        """The arrays of the word vectors of the model."""

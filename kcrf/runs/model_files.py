"""`ModelFiles`: the files of a model, in a run folder or an exported file. Needs no Keras."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np

from kcrf.runs.config_file import StoredRun, read_stored_run
from kcrf.runs.names import CONFIG
from kcrf.runs.settings import Settings


class ModelFiles(ABC):
    """The files of a model: its configuration, its vocabulary and its word vectors."""

    path: Path  # the folder or the file

    @abstractmethod
    def file(self, name: str) -> Path | str:
        """The path of a part of the model in error messages."""

    @abstractmethod
    def read_json(self, name: str) -> dict[str, Any]:
        """The plain values in a part of the model."""

    @abstractmethod
    def read_vocab(self) -> dict[str, int]:
        """The vocabulary of the BERT, a dict from token to number."""

    @abstractmethod
    def read_vectors(self) -> dict[str, np.ndarray]:
        """The arrays of the word vectors of the model."""

    @abstractmethod
    def check_weights(self) -> None:
        """Raises ValueError if the weights have another hash than when they were written."""

    def read_config(self) -> StoredRun:
        """The content of `config.json`: the settings of the user, and the configuration that ran."""
        return read_stored_run(self.file(CONFIG), self.read_json(CONFIG))

    def read_settings(self) -> Settings:
        """The `Settings` of the user."""
        return self.read_config().user

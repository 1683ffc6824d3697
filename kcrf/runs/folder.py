"""The run folder: the model of a training run, and what the run was made of. Imports no Keras.

    config.json         format, version of kcrf, the user's settings, the configuration that ran, where the data came
                        from and its fingerprint
    vectors.npz         vectors of words that the model reads, if any
    vocabulary.json     characters and bigrams, in the order of their numbers, and the lexicon; where words are the
                        units, words, characters, shapes and affixes; with a BERT instead vocab.txt and bert_config.json
    model.weights.h5    the best weights
    log.csv             one row per epoch
    transitions.json    a CRF's labels, scheme, and transitions after each epoch
    predictions.jsonl   held-out sentences with their gold spans, those found, and the probabilities of these; or
                        held-out texts with their gold label, the one found, and the probability of every label
    teacher.npz         the answers of a teacher to the texts of a student that is trained by them
    scores.json         of the best weights, written last
    state.npz           what is needed to resume after an interruption; removed when the run is complete

Files are written next to their place and renamed, so each is whole or not there; `kcrf.runs.replacement` says how a new
run replaces an older one. Other files in the folder are left alone. A process that writes holds the file `.lock`.
"""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from kcrf.files import read_json
from kcrf.runs.config_file import StoredRun, read_stored_run
from kcrf.runs.names import CONFIG, SCORES, STATE, TEACHER, VECTORS, VOCAB, WEIGHTS
from kcrf.runs.replacement import current_folder, has_new_run, is_complete, new_folders
from kcrf.runs.settings import Settings
from kcrf.tokenizers import load_vocab

__all__ = ["RunFolder"]


class RunFolder:
    """Reads a run folder; `kcrf.runs.RunWriter` writes one.

    Args:
        path: The folder.

    Attributes:
        path: The same, or the folder beside it with a complete new run, where a process was killed before it renamed
            that. A `pathlib.Path`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = current_folder(Path(path))

    @classmethod
    def interrupted(cls, path: str | os.PathLike[str]) -> "RunFolder":
        """The `RunFolder` of the interrupted run at `path`. Raises FileNotFoundError if there is none."""
        path = Path(path)
        if is_complete(current_folder(path)) and not has_new_run(path):
            raise FileNotFoundError(f"{path}: needs a run that was interrupted. Received: one that is complete")
        for folder in (*new_folders(path), path):
            if (folder / CONFIG).is_file():
                return cls(folder)
        raise FileNotFoundError(f"{path}: needs a run that was interrupted. Received: a folder without {CONFIG}")

    def file(self, name: str) -> Path:
        """The path of a file of the run, whether it exists or not."""
        return self.path / name

    def read_config(self) -> StoredRun:
        """The `StoredRun` in `config.json`: the settings of the user, and the configuration that ran."""
        path = self.existing(CONFIG)
        return read_stored_run(path, read_json(path))

    def read_settings(self) -> Settings:
        """The `Settings` that the user gave."""
        return self.read_config().user

    def read_json(self, name: str) -> dict[str, Any]:
        """The plain values in a file of the run."""
        return read_json(self.existing(name))

    def read_vocab(self) -> dict[str, int]:
        """The vocabulary of the run's BERT, a dict from token to number."""
        return load_vocab(self.existing(VOCAB))

    def read_vectors(self) -> dict[str, np.ndarray]:
        """The vectors of words that the model reads, a dict of arrays."""
        return self.read_arrays(VECTORS)

    def existing(self, name: str) -> Path:
        """The path of a file of the run. Raises FileNotFoundError if it does not exist."""
        path = self.file(name)
        if not path.is_file():
            hint = f". Did you mean {' or '.join(near)}?" if (near := self._near()) else ""
            raise FileNotFoundError(f"{path}: no such file; a run folder, as `kcrf train` writes it, has it{hint}")
        return path

    def _near(self) -> list[str]:
        """The runs, three at most, in a folder of runs, or the one around a file."""
        configs = [self.path.with_name(CONFIG)] if self.path.is_file() else sorted(self.path.glob(f"*/{CONFIG}"))
        return [str(config.parent) for config in configs[:3] if config.is_file()]

    def load_weights(self, model: Any) -> None:
        """Reads the weights into a Keras model of the same settings."""
        path = self.existing(WEIGHTS)
        try:
            model.load_weights(path)
        except Exception as error:  # of h5py or Keras, whose messages do not name the file
            raise ValueError(f"{path}: cannot be read as the weights of this run ({error})") from error

    def has_state(self) -> bool:
        """Whether there is a state from which training can be resumed."""
        return (self.path / STATE).is_file()

    def is_unfinished(self) -> bool:
        """Whether training has begun, and neither finished nor failed."""
        return self.has_state() and not self.file(SCORES).is_file()

    def read_state(self) -> tuple[Any, list[np.ndarray]]:
        """`(progress, arrays)`, as given to `save_state`."""
        path = self.existing(STATE)
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
                progress = json.loads(arrays["progress"].tobytes())
                return progress, [arrays[str(number)] for number in range(len(arrays.files) - 1)]
        except Exception as error:  # zipfile's, NumPy's and JSON's
            raise ValueError(
                f"{path}: cannot be read as the state of a training run ({error}); without the file, it starts again"
            ) from error

    def read_arrays(self, name: str) -> dict[str, np.ndarray]:
        """The dict of arrays that `save_arrays` wrote. Raises ValueError if the file is damaged."""
        path = self.existing(name)
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
                return dict(arrays)
        except Exception as error:  # zipfile's and NumPy's
            advice = "; without the file, it is computed again" if name == TEACHER else ""
            raise ValueError(f"{path}: cannot be read ({error}){advice}") from error

"""Reads run folders: the model, the configuration and the results of a training run. Imports no Keras.

    config.json         format, version of kcrf, settings of the user, configuration of the run, origin and fingerprint
                        of the data, and, once the run is complete, the hash of model.weights.h5
    vectors.npz         word vectors, if the model has any
    vocabulary.json     characters and bigrams in the order of their numbers, and the lexicon; for word-level models,
                        words, characters, shapes and affixes; with a BERT, vocab.txt and bert_config.json instead
    model.weights.h5    the best weights
    log.csv             one row per epoch
    transitions.json    a CRF's labels, scheme, and transitions after each epoch
    predictions.jsonl   sentences of the test or validation set with gold spans, predicted spans and their
                        probabilities; or texts with the gold label, the predicted one, and all probabilities
    teacher.npz         the predictions of a teacher for the texts of its student
    teacher_words.npz   where it finds words, or entities, in unlabeled texts; they are in the lexicon of the student
    scores.json         the scores of the best weights, written last
    state.npz           the state of training for resuming; removed when the run is complete

A file is written under another name and then renamed, so it is complete or absent. `kcrf.runs.replacement` describes
how a new run replaces an old one. Other files in the folder are kept. A writing process locks the file `.lock`.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from kcrf.files import read_arrays, read_json
from kcrf.runs.model_files import ModelFiles
from kcrf.runs.names import CONFIG, SCORES, STATE, TEACHER, VECTORS, VOCAB, WEIGHTS
from kcrf.runs.replacement import current_folder, has_new_run, is_complete, new_folder
from kcrf.tokenizers import load_vocab


class RunFolder(ModelFiles):
    """Reads a run folder; `kcrf.runs.RunWriter` writes one.

    Args:
        path: The folder.

    Attributes:
        path: The folder, a `pathlib.Path`: that of a complete new run if a process was killed before it renamed it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = current_folder(Path(path))

    @classmethod
    def interrupted(cls, path: str | os.PathLike[str]) -> "RunFolder":
        """The `RunFolder` of the interrupted run at `path`. Raises FileNotFoundError if there is none."""
        path = Path(path)
        if is_complete(current_folder(path)) and not has_new_run(path):
            raise FileNotFoundError(f"{path}: needs a run that was interrupted. Received: one that is complete")
        for folder in (new_folder(path), path):
            if (folder / CONFIG).is_file():
                return cls(folder)
        received = f"a folder without {CONFIG}" if path.is_dir() else "no such folder"
        raise FileNotFoundError(f"{path}: needs a run that was interrupted. Received: {received}")

    def file(self, name: str) -> Path:
        """The path of a file of the run. The file need not exist."""
        return self.path / name

    def read_json(self, name: str) -> dict[str, Any]:
        return read_json(self.existing(name))

    def read_vocab(self) -> dict[str, int]:
        return load_vocab(self.existing(VOCAB))

    def read_vectors(self) -> dict[str, np.ndarray]:
        return self.read_arrays(VECTORS)

    def existing(self, name: str) -> Path:
        """The path of a file of the run. Raises FileNotFoundError if it does not exist."""
        path = self.file(name)
        if not path.is_file():
            hint = f". Did you mean {' or '.join(near)}?" if (near := self._near()) else ""
            raise FileNotFoundError(f"{path}: no such file; a run folder, as `kcrf train` writes it, has it{hint}")
        return path

    def _near(self) -> list[str]:
        """At most three runs in a folder of runs, or the run that contains a file."""
        configs = [self.path.with_name(CONFIG)] if self.path.is_file() else sorted(self.path.glob(f"*/{CONFIG}"))
        return [str(config.parent) for config in configs[:3] if config.is_file()]

    def check_weights(self) -> None:
        expected, path = self.read_json(CONFIG).get("weights"), self.file(WEIGHTS)
        if expected is not None and path.is_file() and sha256_of_weights(path) != expected:
            reason = f"their SHA-256 is another than in {CONFIG}: the file is damaged, or was replaced"
            raise ValueError(f"{path}: cannot be read as the weights of this run ({reason}). Copy or train it again")

    def load_weights(self, model: Any, name: str = WEIGHTS) -> None:
        """Loads the weights into a Keras model with the same settings."""
        path = self.existing(name)
        try:
            model.load_weights(path)
        except Exception as error:  # errors of h5py or Keras do not name the file
            raise ValueError(f"{path}: cannot be read as the weights of this run ({error})") from error

    def has_state(self) -> bool:
        """Whether the folder has a state from which training can be resumed."""
        return (self.path / STATE).is_file()

    def is_unfinished(self) -> bool:
        """Whether training has begun and has neither finished nor failed."""
        return self.has_state() and not self.file(SCORES).is_file()

    def read_state(self) -> tuple[Any, list[np.ndarray]]:
        """`(progress, arrays)`, the arguments of `save_state`."""
        path = self.existing(STATE)
        try:
            arrays = read_arrays(path)
            progress = json.loads(arrays.pop("progress").tobytes())
            return progress, [arrays[str(number)] for number in range(len(arrays))]
        except (KeyError, ValueError) as error:
            raise ValueError(
                f"{path}: cannot be read as the state of a training run ({error}); without the file, it starts again"
            ) from error

    def read_arrays(self, name: str) -> dict[str, np.ndarray]:
        """The dict of arrays that `save_arrays` wrote. Raises ValueError if the file is damaged."""
        path = self.existing(name)
        try:
            return read_arrays(path)
        except ValueError as error:
            advice = "; without the file, it is computed again" if name == TEACHER else ""
            raise ValueError(f"{error}{advice}") from None


def is_run(path: str | os.PathLike[str]) -> bool:
    """Whether a folder is a run folder, and not the folder of a BERT, which may have a `config.json`, too."""
    config = Path(path) / CONFIG
    return config.is_file() and isinstance(read_json(config).get("settings"), dict)


def sha256_of_weights(path: Path) -> str:
    """Hashes the arrays of an HDF5 file; "" if it is damaged. Files of the same arrays differ: they contain times."""
    import h5py

    digest = hashlib.sha256()

    def add(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            digest.update(f"{name} {item.shape} {item.dtype}".encode())
            digest.update(np.asarray(item[()]).tobytes())

    try:
        with h5py.File(path, "r") as file:
            file.visititems(add)
    except Exception:  # errors of h5py have many classes
        return ""
    return digest.hexdigest()

"""The run folder: the model of a training run, and what the run was made of. Imports no Keras.

    config.json         format, version of kcrf, settings, where the data came from and its fingerprint
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

Files are written next to their place and renamed, so each is whole or not there. A new run into a folder that holds a
complete one is written into the folder `new.run` inside it; when it is complete, its files replace the old ones. Until
then the old model can be used. Other files in the folder are left alone. A process that writes holds the file `.lock`.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from kcrf.corpora import Example, Sentence
from kcrf.files import read_json, write_aside
from kcrf.runs.formats import classifications_text, log_text, predictions_text, transitions_text
from kcrf.runs.lock import LOCK, locked
from kcrf.runs.settings import Settings
from kcrf.tags import TagScheme
from kcrf.tokenizers import load_vocab
from kcrf.version import __version__

__all__ = ["RunFolder"]

FORMAT = 2
VECTORS, VOCABULARY, VOCAB, BERT_CONFIG = "vectors.npz", "vocabulary.json", "vocab.txt", "bert_config.json"
CONFIG, WEIGHTS, LINEAR = "config.json", "model.weights.h5", "model.linear.npz"
STATE, TEACHER = "state.npz", "teacher.npz"
LOG, TRANSITIONS, PREDICTIONS, SCORES = "log.csv", "transitions.json", "predictions.jsonl", "scores.json"
_SETUP = (VECTORS, VOCABULARY, VOCAB, BERT_CONFIG)  # what is written before config.json
# In the order in which they move.
_FILES = (CONFIG, *_SETUP, TEACHER, WEIGHTS, LINEAR, LOG, TRANSITIONS, PREDICTIONS, STATE, SCORES)
_BEFORE_CONFIG = {LOCK, *_SETUP, *(f"new.{name}" for name in (*_SETUP, CONFIG))}  # left by a process killed early
_HDF5_ITEM = 4096  # bytes: at least what HDF5 needs for an array besides its values


class RunFolder:
    """Reads a run folder; `RunFolder.create` and `RunFolder.resume` are contexts in which one is written.

    Args:
        path: The folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = self._home = Path(path)
        self._aside = self._home / "new.run"

    @classmethod
    @contextmanager
    def create(cls, path: str | os.PathLike[str], overwrite: bool = False) -> Iterator["RunFolder"]:
        """The folder to write a run into, a context.

        After an error, an unfinished run is kept only if an epoch was saved; after an interruption it is always kept.

        Args:
            path: The folder. Made if it does not exist.
            overwrite: Whether a complete run in it is replaced when the new one is complete. Defaults to False: it is
                refused.

        Raises:
            FileExistsError: `path` is a file, a folder with other files and no run, or one with a complete run.
            BlockingIOError: Another process trains into it.
        """
        folder = cls(path)
        if folder.path.exists() and not folder.path.is_dir():
            raise FileExistsError(f"{path}: needs a folder to write the run into. Received: a file")
        folder._check_for_other_files()  # before locking, which writes a file
        with locked(folder.path):
            folder._finish()
            folder._check_for_other_files()
            if not overwrite and (folder.path / SCORES).is_file():
                raise FileExistsError(f"{path}: needs overwrite=True to replace a complete run. Received: False")
            if folder._is_run():
                folder.path = folder._aside
                _clear(folder.path)
                folder.path.mkdir(exist_ok=True)
            yield from folder._written(is_new=not folder._names() - {LOCK})

    @classmethod
    @contextmanager
    def resume(cls, path: str | os.PathLike[str]) -> Iterator["RunFolder"]:
        """The folder of an interrupted run, a context in which the rest of the run is written.

        Raises:
            FileNotFoundError: There is no interrupted run.
            BlockingIOError: Its process is still training.
        """
        if not Path(path).is_dir():
            cls.interrupted(path)  # raises: to lock a folder would make it
        with locked(path):
            cls(path)._finish()
            yield from cls.interrupted(path)._written()

    @classmethod
    def interrupted(cls, path: str | os.PathLike[str]) -> "RunFolder":
        """The `RunFolder` of the interrupted run at `path`, to be read. Raises FileNotFoundError if there is none."""
        folder = cls(path)
        if (folder._aside / CONFIG).is_file() and not folder._is_replaced():
            folder.path = folder._aside
        elif folder.file(SCORES).is_file():
            raise FileNotFoundError(f"{path}: needs a run that was interrupted. Received: one that is complete")
        elif not (folder.path / CONFIG).is_file():
            raise FileNotFoundError(f"{path}: needs a run that was interrupted. Received: a folder without {CONFIG}")
        return folder

    def _names(self):
        return {path.name for path in self.path.iterdir()} if self.path.is_dir() else set()

    def _check_for_other_files(self):
        if not self._names() <= _BEFORE_CONFIG and not self._is_run():
            raise FileExistsError(
                f"{self.path}: needs a run folder, an empty folder or none. Received: a folder with other files, which "
                "is not a run folder; it was not touched"
            )

    def _is_run(self):
        path = self.path / CONFIG
        return path.is_file() and "settings" in read_json(path)  # a BERT's folder may have a config.json too

    def _written(self, is_new=False):
        for name in _FILES:  # of a process that was killed
            (self.path / f"new.{name}").unlink(missing_ok=True)
        try:
            yield self
        except BaseException as error:
            is_failed = is_new and isinstance(error, Exception)  # not KeyboardInterrupt: that run can be resumed
            if not self.has_state() and (is_failed or self.path != self._home):
                _clear(self.path)
            raise
        self.path = self._home
        self._finish()

    def _is_replaced(self):
        """Whether the new run inside the folder is complete, so that its files are replacing the old ones."""
        return (self._aside / SCORES).is_file()

    def _finish(self):
        """Completes the replacement of an old run by a new one, and removes what a killed process left."""
        if not self._is_run():
            return
        if self._is_replaced():
            there = [name for name in _FILES if (self._aside / name).is_file()]
            if CONFIG in there:  # nothing has moved yet
                for name in set(_FILES) - set(there):
                    (self._home / name).unlink(missing_ok=True)
            for name in there:
                os.replace(self._aside / name, self._home / name)
        if not (self._aside / CONFIG).is_file():
            _clear(self._aside)
        if (self._home / SCORES).is_file():
            (self._home / STATE).unlink(missing_ok=True)

    def file(self, name: str) -> Path:
        """The path of a file of the run, whether it exists or not."""
        newer = self._aside / name
        return newer if self.path == self._home and self._is_replaced() and newer.is_file() else self.path / name

    # -- what the model is made of

    def save_config(self, settings: Settings, data: Mapping[str, Any], backend: str) -> None:
        """Writes `config.json`, which makes the folder a run.

        Args:
            settings: `Settings`.
            data: A dict of plain values, kept with the settings.
            backend: The name of the Keras backend that trains.
        """
        about = {"format": FORMAT, "kcrf": __version__, "backend": backend}
        self.save_json(CONFIG, {**about, "settings": asdict(settings), "data": data})

    def read_config(self) -> dict[str, Any]:
        """What `save_config` wrote: a dict of `settings`, a dict, `data` and `backend`. Both are None in old runs."""
        path = self.existing(CONFIG)
        return check_config(path, read_json(path))

    def read_settings(self) -> Settings:
        """The `Settings` of the run."""
        return self.settings_of(self.read_config())

    def settings_of(self, config: Mapping[str, Any]) -> Settings:
        """The `Settings` in what `read_config` returned."""
        return settings_of(self.file(CONFIG), config)

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
            raise FileNotFoundError(f"{path}: no such file; a run folder, as `kcrf train` writes it, has it")
        return path

    # -- weights and the state of training

    def save_weights(self, model: Any) -> None:
        """Writes the weights of a Keras model."""
        # HDF5 crashes on a full disk: check first that there is room.
        room = sum(4 * int(np.prod(variable.shape)) + _HDF5_ITEM for variable in model.variables)
        self._write_aside(WEIGHTS, model.save_weights, room)

    def load_weights(self, model: Any) -> None:
        """Reads the weights into a Keras model of the same settings."""
        path = self.existing(WEIGHTS)
        try:
            model.load_weights(path)
        except Exception as error:  # of h5py or Keras, whose messages do not name the file
            raise ValueError(f"{path}: cannot be read as the weights of this run ({error})") from error

    def save_state(self, progress: Any, arrays: Iterable[np.ndarray]) -> None:
        """Writes the state of training, from which it can be resumed.

        Args:
            progress: Plain values.
            arrays: List of arrays.
        """
        text = np.frombuffer(json.dumps(progress).encode(), np.uint8)
        numbered = {str(number): array for number, array in enumerate(arrays)}
        self._write_aside(STATE, lambda path: np.savez(path, progress=text, **numbered))

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

    def save_arrays(self, name: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Writes a file of arrays, a dict."""
        self._write_aside(name, lambda path: np.savez(path, **arrays))

    def read_arrays(self, name: str) -> dict[str, np.ndarray]:
        """The dict of arrays that `save_arrays` wrote. Raises ValueError if the file is damaged."""
        path = self.existing(name)
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
                return dict(arrays)
        except Exception as error:  # zipfile's and NumPy's
            advice = "; without the file, it is computed again" if name == TEACHER else ""
            raise ValueError(f"{path}: cannot be read ({error}){advice}") from error

    # -- log, transitions, predictions, scores: `kcrf.runs.formats` has the formats

    def save_log(self, rows: Sequence[Mapping[str, float]]) -> None:
        """Writes the log: a list of dicts, one for each epoch."""
        self.save_text(LOG, log_text(rows))

    def save_transitions(self, scheme: TagScheme, epochs: Iterable[tuple[int, Sequence[Sequence[float]]]]) -> None:
        """Writes the transitions: a list of `(epoch, matrix)`, matrices as nested lists."""
        self.save_text(TRANSITIONS, transitions_text(scheme, epochs))

    def save_predictions(self, sentences: Iterable[Sentence], found: Iterable[Sequence[tuple]]) -> None:
        """Writes what was found in held-out `Sentence`s: for each a list of `(start, end[, label], probability)`."""
        self.save_text(PREDICTIONS, predictions_text(sentences, found))

    def save_classifications(self, examples: Iterable[Example], found: Iterable[Any]) -> None:
        """Writes what was found for held-out `Example`s: for each an object with label, probability, probabilities."""
        self.save_text(PREDICTIONS, classifications_text(examples, found))

    def save_scores(self, scores: Mapping[str, Any]) -> None:
        """Writes the scores of the kept weights, which completes the run."""
        self.save_json(SCORES, scores)

    # -- files

    def save_json(self, name: str, value: Any) -> None:
        """Writes a file of plain values."""
        self.save_text(name, json.dumps(value, ensure_ascii=False, indent=1))

    def save_text(self, name: str, text: str) -> None:
        """Writes a file of text. Lone surrogates, which vocabularies may have, are kept."""
        self._write_aside(name, lambda path: path.write_bytes(text.encode("utf-8", "surrogatepass")))

    def _write_aside(self, name, write, room=0):
        write_aside(self.path / name, write, room)


def check_config(path, config):
    """What `RunFolder.read_config` returns, from the content of a file at `path`."""
    if not isinstance(config.get("format", 0), int):
        raise ValueError(f"{path}: needs a number as its format. Received: {config['format']!r}")
    if config.get("format", 0) > FORMAT:
        raise ValueError(
            f"{path}: needs run format {FORMAT} or older, which kcrf {__version__} reads. "
            f"Received: format {config['format']}, written by kcrf {config.get('kcrf')}; please upgrade"
        )
    if "model_type" in config:
        raise ValueError(
            f"{path}: needs the settings of a run of `kcrf train`. Received: the configuration of a "
            f"{config['model_type']!r} without a task, which is for --bert"
        )
    if not isinstance(config.get("settings"), dict):
        raise ValueError(f"{path}: needs the settings of a run. Received: {sorted(config)}")
    return {"settings": config["settings"], "data": config.get("data"), "backend": config.get("backend")}


def settings_of(path, config):
    """The `Settings` in what `check_config` returned."""
    try:
        return Settings.of(config["settings"])
    except (TypeError, ValueError) as error:  # a value of another type, or out of its range
        raise ValueError(f"{path}: needs the settings of a run. Received: {error}") from None


def _clear(path):
    """Removes the files of a run, and the folder if it is empty then."""
    for name in _FILES:
        for file in (path / name, path / f"new.{name}"):
            file.unlink(missing_ok=True)
    with suppress(OSError):  # it does not exist, or is not empty
        path.rmdir()

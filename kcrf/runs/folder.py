"""The run folder: what a training run leaves behind, and all that using its model takes. Imports no Keras.

    config.json         format, version of kcrf, settings, where the data came from and its fingerprint
    vocabulary.json     characters and bigrams, in the order of their numbers, and the lexicon; with a BERT in its
                        place vocab.txt and bert_config.json
    model.weights.h5    the best weights
    log.csv             one row per epoch
    transitions.json    a CRF's labels, scheme, and transitions after each epoch
    predictions.jsonl   held-out sentences with their gold spans and those found, and their confidence
    scores.json         of the best weights, written last
    state.npz           all that going on after an interruption takes; gone when the run is complete

Files are written aside and renamed, so each is whole or not there. Training into a folder that is a run already works
in the folder `new.run` inside it; its files take the places of the old ones when the last of them is there. Until then,
the old model stays as it was. What else is in the folder is left alone.
"""

import csv
import io
import json
import os
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

import numpy as np

from kcrf.files import json_line, read_json, write_aside
from kcrf.runs.settings import Settings
from kcrf.version import __version__

__all__ = ["RunFolder", "locked"]

FORMAT = 2
_CONFIG, _WEIGHTS, _STATE, _SCORES = "config.json", "model.weights.h5", "state.npz", "scores.json"
_HDF5_ITEM = 4096  # bytes, more than an array takes beside its values
_LOG, _TRANSITIONS, _PREDICTIONS = "log.csv", "transitions.json", "predictions.jsonl"
_SETUP = ("vocabulary.json", "vocab.txt", "bert_config.json")
_FILES = (_CONFIG, *_SETUP, _WEIGHTS, _LOG, _TRANSITIONS, _PREDICTIONS, _STATE, _SCORES)  # as they take their places
_BEFORE_CONFIG = {*_SETUP, *(f"new.{name}" for name in (*_SETUP, _CONFIG))}  # all there may be before config.json


class RunFolder:
    """Reads a run folder; `RunFolder.create` and `RunFolder.resume` are contexts in which one is written.

    Args:
        path: The folder.
    """

    def __init__(self, path):
        self.path = self._home = Path(path)
        self._aside = self._home / "new.run"

    @classmethod
    @contextmanager
    def create(cls, path):
        """The folder to write a run into.

        What an error leaves behind of an unfinished run is what can be resumed, after its first epoch; what an
        interruption leaves behind is that from the beginning.

        Raises:
            FileExistsError: Something that is not a run folder is there.
            BlockingIOError: Another process trains into it.
        """
        folder = cls(path)
        if folder.path.exists() and not folder.path.is_dir():
            raise FileExistsError(f"{path}: needs a folder to write the run into. Received: a file")
        with locked(folder.path):
            folder._finish()
            if folder.path.is_dir() and not {path.name for path in folder.path.iterdir()} <= _BEFORE_CONFIG:
                if not folder._is_run():
                    raise FileExistsError(f"{path}: is there and is not a run folder (no run's {_CONFIG}); not touched")
                folder.path = folder._aside
                _clear(folder.path)
            is_new = not folder.path.exists() or not any(folder.path.iterdir())
            folder.path.mkdir(parents=True, exist_ok=True)
            yield from folder._written(is_new)

    @classmethod
    @contextmanager
    def resume(cls, path):
        """The folder of a run that was interrupted.

        Raises:
            FileNotFoundError: There is none.
            BlockingIOError: Its process is still at work.
        """
        with locked(path):
            cls(path)._finish()
            yield from cls.interrupted(path)._written()

    @classmethod
    def interrupted(cls, path):
        """The `RunFolder` of the interrupted run at `path`, to be read. Raises as `resume`."""
        folder = cls(path)
        if (folder._aside / _CONFIG).is_file() and not folder._is_replaced():
            folder.path = folder._aside
        elif folder.file(_SCORES).is_file():
            raise FileNotFoundError(f"{path}: needs a run that was interrupted. Received: one that is complete")
        elif not (folder.path / _CONFIG).is_file():
            raise FileNotFoundError(f"{path}: needs a run that was interrupted. Received: a folder without {_CONFIG}")
        return folder

    def _is_run(self):
        path = self.path / _CONFIG
        return path.is_file() and "settings" in read_json(path)  # a BERT's folder may have a config.json too

    def _written(self, is_new=False):
        for name in _FILES:  # of a process that was killed
            (self.path / f"new.{name}").unlink(missing_ok=True)
        try:
            yield self
        except BaseException as error:
            would_fail_again = is_new and isinstance(error, Exception)  # other than one that was interrupted
            if not self.has_state() and (would_fail_again or self.path != self._home or not any(self.path.iterdir())):
                _clear(self.path)
            raise
        self.path = self._home
        self._finish()

    def _is_replaced(self):
        """Whether the run aside is complete, so that its files are on their way to the places of the old ones."""
        return (self._aside / _SCORES).is_file()

    def _finish(self):
        """Puts a complete run into its place and drops its state, and what a process left that was killed too early."""
        if not self._is_run():
            return
        if self._is_replaced():
            there = [name for name in _FILES if (self._aside / name).is_file()]
            if _CONFIG in there:  # nothing has moved yet
                for name in set(_FILES) - set(there):
                    (self._home / name).unlink(missing_ok=True)
            for name in there:
                os.replace(self._aside / name, self._home / name)
        if not (self._aside / _CONFIG).is_file():
            _clear(self._aside)
        if (self._home / _SCORES).is_file():
            (self._home / _STATE).unlink(missing_ok=True)

    def file(self, name):
        """The path of a file of the run, which need not be there."""
        newer = self._aside / name
        return newer if self.path == self._home and self._is_replaced() and newer.is_file() else self.path / name

    # -- what the model is made of

    def save_setup(self, settings, reader, data, backend):
        """Writes what the model is made of; `config.json`, which makes the folder a run, comes last.

        Args:
            settings: `Settings`.
            reader: The `CharacterReader` or `PieceReader` of the model.
            data: A dict of plain values, kept beside the settings.
            backend: The name of the Keras backend that trains.
        """
        reader.save(self._save_text)
        about = {"format": FORMAT, "kcrf": __version__, "backend": backend}
        self._save_json(_CONFIG, {**about, "settings": asdict(settings), "data": data})

    def read_config(self):
        """A dict of `settings`, a dict, and of `data` and `backend`, as `save_setup` was given; None in old runs."""
        path = self.existing(_CONFIG)
        config = read_json(path)
        if config.get("format", 0) > FORMAT:
            raise ValueError(
                f"{path}: needs run format {FORMAT} or older, which kcrf {__version__} reads. "
                f"Received: format {config['format']}, written by kcrf {config.get('kcrf')}; please upgrade"
            )
        if not isinstance(config.get("settings"), dict):
            raise ValueError(f"{path}: needs the settings of a run. Received: {sorted(config)}")
        return {"settings": config["settings"], "data": config.get("data"), "backend": config.get("backend")}

    def read_settings(self):
        """The `Settings` of the run."""
        values = self.read_config()["settings"]
        try:
            return Settings.of(values)
        except (TypeError, ValueError) as error:  # a value of another kind, or out of its range
            raise ValueError(f"{self.file(_CONFIG)}: needs the settings of a run. Received: {error}") from None

    def existing(self, name):
        """The path of a file in the folder, which must be there."""
        path = self.file(name)
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such file; a run folder, as `kcrf train` writes it, has it")
        return path

    # -- weights and the state of training

    def save_weights(self, model):
        """Writes the weights of a Keras model. HDF5 crashes on a full disk, so the room is made sure of before."""
        room = sum(4 * int(np.prod(variable.shape)) + _HDF5_ITEM for variable in model.variables)
        self._write_aside(_WEIGHTS, model.save_weights, room)

    def load_weights(self, model):
        """Reads the weights into a Keras model of the same settings."""
        path = self.existing(_WEIGHTS)
        try:
            model.load_weights(path)
        except Exception as error:  # whatever h5py and Keras raise: the user needs the name of the file
            raise ValueError(f"{path}: cannot be read as the weights of this run ({error})") from error

    def save_state(self, progress, arrays):
        """Writes the state of training: `progress`, plain values, and a list of arrays."""
        text = np.frombuffer(json.dumps(progress).encode(), np.uint8)
        numbered = {str(number): array for number, array in enumerate(arrays)}
        self._write_aside(_STATE, lambda path: np.savez(path, progress=text, **numbered))

    def has_state(self):
        """Whether there is a state of training to go on from."""
        return (self.path / _STATE).is_file()

    def read_state(self):
        """What `save_state` was given."""
        path = self.existing(_STATE)
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
                progress = json.loads(arrays["progress"].tobytes())
                return progress, [arrays[str(number)] for number in range(len(arrays.files) - 1)]
        except Exception as error:  # zipfile's, NumPy's and JSON's
            raise ValueError(
                f"{path}: cannot be read as the state of a training run ({error}); without the file, it starts anew"
            ) from error

    # -- what is told about the run

    def save_log(self, rows):
        """Writes the log: a list of dicts, one per epoch."""
        text = io.StringIO()
        writer = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        self._save_text(_LOG, text.getvalue())

    def save_transitions(self, scheme, epochs):
        """Writes the transitions: a list of `[epoch, matrix]`, matrices as nested lists."""
        described = {"labels": list(scheme.labels), "scheme": scheme.get_config(), "epochs": epochs}
        self._save_text(_TRANSITIONS, json.dumps(described, ensure_ascii=False))

    def save_predictions(self, predictions):
        """Writes what was found in held-out sentences, a list of dicts."""
        self._save_text(_PREDICTIONS, "".join(f"{json_line(prediction)}\n" for prediction in predictions))

    def save_scores(self, scores):
        """Writes the scores of the kept weights."""
        self._save_json(_SCORES, scores)

    # -- files

    def _save_json(self, name, value):
        self._save_text(name, json.dumps(value, ensure_ascii=False, indent=1))

    def _save_text(self, name, text):
        self._write_aside(name, lambda path: path.write_bytes(text.encode("utf-8", "surrogatepass")))

    def _write_aside(self, name, write, room=0):
        write_aside(self.path / name, write, room)


def _clear(path):
    """Removes a run, and its folder if nothing else is there."""
    for name in _FILES:
        for file in (path / name, path / f"new.{name}"):
            file.unlink(missing_ok=True)
    with suppress(OSError):  # it is not there, or not empty
        path.rmdir()


def _named(path):
    """The path of a folder, with a name even where it is ".", so that there are names beside it."""
    path = Path(path)
    return path if path.name not in ("", "..") else path.resolve()


@contextmanager
def locked(path):
    """Keeps other processes from writing a run folder, by the file `.<folder>.lock` beside it.

    The lock ends with its process, however that ends. Windows has no such locks: there nothing is locked.

    Raises:
        BlockingIOError: Another process holds the lock.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    path = _named(path)
    name = path.with_name(f".{path.name}.lock")
    name.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with open(name, "a+", encoding="ascii") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                message = f"{path}: another process trains into this folder. Received: process {file.read() or '?'}"
                raise BlockingIOError(message) from None
            if not name.exists() or not os.path.samestat(os.stat(name), os.fstat(file.fileno())):
                continue  # its owner removed the file between our opening and locking it
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            try:
                yield
            finally:
                name.unlink(missing_ok=True)
            return

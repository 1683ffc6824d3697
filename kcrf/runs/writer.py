"""Writes a run folder. Imports no Keras."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from kcrf.files import write_aside
from kcrf.runs import names
from kcrf.runs.config_file import StoredRun
from kcrf.runs.folder import RunFolder, is_run, sha256_of_weights
from kcrf.runs.lock import LOCK, locked
from kcrf.runs.replacement import check_replaceable, clear, new_folder, settle

_SETUP = (names.ESTIMATES, *names.SETUP)
_BEFORE_CONFIG = {LOCK, *_SETUP, *(f"new.{name}" for name in (*_SETUP, names.CONFIG))}  # left by a process killed early
_HDF5_ITEM = 4096  # bytes that HDF5 needs at least for an array in addition to its values


class RunWriter(RunFolder):
    """Reads and writes the files of a run. Use the contexts `create` and `resume` to write a run."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @classmethod
    @contextmanager
    def create(cls, path: str | os.PathLike[str], overwrite: bool = False) -> Iterator["RunWriter"]:
        """A context with the writer of a new run. After an error, an unfinished run is kept only if an epoch was saved;
        after an interruption it is always kept."""
        home = Path(path)
        if home.exists() and not home.is_dir():
            raise FileExistsError(f"{path}: needs a folder to write the run into. Received: a file")
        _settle_missing(home)
        _check_for_other_files(home)  # checked before locking, which writes a file
        with locked(home):
            settle(home)
            _check_for_other_files(home)
            if not overwrite and (home / names.SCORES).is_file():
                raise FileExistsError(f"{path}: needs overwrite=True to replace a complete run. Received: False")
            new = new_folder(home)
            clear(new)
            if not is_run(home):
                for name in (names.ESTIMATES, names.TEACHER_WORDS):  # of a process killed before it was a run
                    (home / name).unlink(missing_ok=True)
                yield from cls(home)._write(home, is_new=not _names(home) - {LOCK})
                return
            check_replaceable(home)
            new.mkdir(exist_ok=True)
            yield from cls(new)._write(home)

    @classmethod
    @contextmanager
    def resume(cls, path: str | os.PathLike[str]) -> Iterator["RunWriter"]:
        """A context with the writer of an interrupted run."""
        home = Path(path)
        _settle_missing(home)
        if not home.is_dir():
            RunFolder.interrupted(home)  # raises if there is no run; locking would create the folder
        with locked(home):
            settle(home)
            yield from cls(RunFolder.interrupted(home).path)._write(home)

    def _write(self, home: Path, is_new: bool = False) -> Iterator["RunWriter"]:
        """Yields the writer. Afterwards the run is complete, and replaces an old run in the folder `home`."""
        for name in names.FILES:  # files of a killed process
            self.file(f"new.{name}").unlink(missing_ok=True)
        try:
            yield self
        except BaseException as error:
            is_failed = is_new and isinstance(error, Exception)  # not KeyboardInterrupt: that can be resumed
            if not self.has_state() and (is_failed or self.path != home):
                clear(self.path)
            raise
        settle(home)

    def save_config(self, run: StoredRun) -> None:
        """Writes `config.json`, which makes the folder a run, with the hash of the weights, if there are any."""
        weights = self.file(names.WEIGHTS)
        hashed = {"weights": sha256_of_weights(weights)} if weights.is_file() else {}
        self.save_json(names.CONFIG, run.to_json() | hashed)

    def save_weights(self, model: Any) -> None:
        """Writes the weights of a Keras model."""
        # HDF5 crashes on a full disk: check first that there is room.
        room = sum(4 * int(np.prod(variable.shape)) + _HDF5_ITEM for variable in model.variables)
        self._write_aside(names.WEIGHTS, model.save_weights, room)

    def save_state(self, progress: Any, arrays: Iterable[np.ndarray]) -> None:
        """Writes the state of training, from which it can be resumed."""
        text = np.frombuffer(json.dumps(progress).encode(), np.uint8)
        numbered = {str(number): array for number, array in enumerate(arrays)}
        self._write_aside(names.STATE, lambda path: np.savez(path, progress=text, **numbered))  # type: ignore[arg-type]

    def save_arrays(self, name: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Writes a file of arrays, a dict."""
        self._write_aside(name, lambda path: np.savez(path, **arrays))  # type: ignore[arg-type]

    def save_scores(self, scores: Mapping[str, Any]) -> None:
        """Writes the scores of the best weights, which completes the run."""
        self.save_json(names.SCORES, scores)

    def save_json(self, name: str, value: Any) -> None:
        """Writes a file of plain values."""
        self.save_text(name, json.dumps(value, ensure_ascii=False, indent=1))

    def save_text(self, name: str, text: str) -> None:
        """Writes a text file. Keeps lone surrogates, which vocabularies may contain."""
        self._write_aside(name, lambda path: path.write_bytes(text.encode("utf-8", "surrogatepass")))

    def _write_aside(self, name: str, write: Callable[[Path], object], room: int = 0) -> None:
        write_aside(self.path / name, write, room, self.path / f"new.{name}")


def _settle_missing(home: Path) -> None:
    """Renames a complete new run if a process was killed after it had renamed the old run."""
    if not home.exists():
        settle(home)


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def _check_for_other_files(folder: Path) -> None:
    if not _names(folder) <= _BEFORE_CONFIG and not is_run(folder):
        raise FileExistsError(
            f"{folder}: needs a run folder, an empty folder or none. Received: a folder with other files, which "
            "is not a run folder; it was not touched"
        )

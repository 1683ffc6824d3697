"""Replaces the folder of an old run by the folder of a complete new run.

A run is written into its folder, such as `runs/ner`. If the folder already contains a run, the new run is written into
`runs/.ner.new`. When the new run is complete, the folders are renamed, `ner` to `.ner.old` and `.ner.new` to `ner`, and
the old run is removed. Files that do not belong to the old run move to the new folder. If a process is killed between
these steps, the next process that writes into the folder takes the remaining steps.
"""

import os
from contextlib import suppress
from pathlib import Path

from kcrf.runs.lock import LOCK
from kcrf.runs.names import CONFIG, FILES, SCORES, STATE, VALIDATED


def new_folder(path: Path) -> Path:
    """The folder next to a run folder into which its replacement is written."""
    return _sibling(path, "new")


def has_new_run(path: Path) -> bool:
    """Whether there is an incomplete new run."""
    return (new_folder(path) / CONFIG).is_file() and not is_complete(new_folder(path))


def current_folder(path: Path) -> Path:
    """The folder with the files of a run: the path itself, or its new folder if that is complete."""
    return new_folder(path) if is_complete(new_folder(path)) else path


def is_complete(folder: Path) -> bool:
    """Whether a run is complete: the scores are written last."""
    return (folder / SCORES).is_file() and (folder / CONFIG).is_file()


def check_replaceable(path: Path) -> None:
    """Raises PermissionError if a folder cannot be renamed, so that no new run can take its place."""
    real = Path(os.path.realpath(path))
    if real.is_mount() or not os.access(real.parent, os.W_OK):
        raise PermissionError(
            f"{path}: the folder around a run must be writable to replace the run: the new one is written beside it. "
            "Train into another folder, or remove the run first"
        )


def settle(path: Path) -> None:
    """Completes the replacement of a run by a complete new one, and removes what a killed process left. Only the
    process that holds the lock of the folder may call this function, unless the path does not exist."""
    path = Path(os.path.realpath(path))
    new, old = new_folder(path), _sibling(path, "old")
    if is_complete(new):
        if path.is_dir():
            _move_other_files(path, new)
            os.rename(path, old)
        with suppress(FileNotFoundError):  # another process was faster
            os.rename(new, path)
    elif not (new / CONFIG).is_file():
        clear(new)
    if path.is_dir():
        clear(old)
        if is_complete(path):
            for name in (VALIDATED, STATE):
                (path / name).unlink(missing_ok=True)


def clear(folder: Path) -> None:
    """Removes the files of a run, and the folder if it is empty then."""
    for name in FILES:
        for file in (folder / name, folder / f"new.{name}"):
            file.unlink(missing_ok=True)
    with suppress(OSError):  # the folder does not exist, or is not empty
        folder.rmdir()


def _sibling(path: Path, ending: str) -> Path:
    real = Path(os.path.realpath(path))  # next to the folder itself, if the path is a link
    return real.parent / f".{real.name}.{ending}"


def _move_other_files(path: Path, new: Path) -> None:
    """Moves other files from the old folder to the new one, and the lock last."""
    names = {entry.name for entry in path.iterdir()} - {*FILES, *(f"new.{name}" for name in FILES)}
    for name in sorted(names, key=lambda name: (name == LOCK, name)):
        if name == LOCK or not (new / name).exists():
            os.replace(path / name, new / name)

"""Where the files of a new run are until they replace those of an older one. Writes only where it says so.

A run is written into its folder, say `runs/ner`. If that holds a run already, the new one is written into
`runs/.ner.new` beside it. When the new run is complete, the folders are renamed: `ner` to `.ner.old`, `.ner.new` to
`ner`; then the old run is removed. Files that are not of the run move along. Where a process is killed between these
steps, the next one that writes there takes the remaining steps.
"""

import os
from contextlib import suppress
from pathlib import Path

from kcrf.runs.lock import LOCK
from kcrf.runs.names import CONFIG, FILES, SCORES, STATE

__all__ = ["check_replaceable", "clear", "current_folder", "has_new_run", "is_complete", "new_folder", "new_folders"]
__all__ += ["settle"]

OLDER_NEW = "new.run"  # inside the folder: where earlier versions wrote a new run


def new_folder(path: Path) -> Path:
    """The folder beside that of a run in which the run that will replace it is written."""
    return _sibling(path, "new")


def new_folders(path: Path) -> list[Path]:
    """The new folder, and the one inside the folder in which earlier versions wrote a new run."""
    return [new_folder(path), path / OLDER_NEW]


def has_new_run(path: Path) -> bool:
    """Whether a new run has begun that is not complete."""
    return any((folder / CONFIG).is_file() and not is_complete(folder) for folder in new_folders(path))


def current_folder(path: Path) -> Path:
    """The folder with the files of a run: the path itself, or its new folder if that is complete."""
    return next((folder for folder in new_folders(path) if is_complete(folder)), path)


def is_complete(folder: Path) -> bool:
    """Whether a folder has all files of a run; the scores are written last."""
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
    """Completes the replacement of a run by a complete new one, and removes what a killed process left.

    Only the process that holds the lock of the folder may call it, but for a path that does not exist.
    """
    path = Path(os.path.realpath(path))
    new, old = new_folder(path), _sibling(path, "old")
    if path.is_dir():
        _settle_older_version(path, new)
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
            (path / STATE).unlink(missing_ok=True)


def clear(folder: Path) -> None:
    """Removes the files of a run, and the folder if it is empty then."""
    for name in FILES:
        for file in (folder / name, folder / f"new.{name}"):
            file.unlink(missing_ok=True)
    with suppress(OSError):  # it does not exist, or is not empty
        folder.rmdir()


def _sibling(path: Path, ending: str) -> Path:
    real = Path(os.path.realpath(path))  # beside the folder itself where the path is a link
    return real.parent / f".{real.name}.{ending}"


def _move_other_files(path: Path, new: Path) -> None:
    """Moves the files that are not of the old run to the new one, and its lock last."""
    names = {entry.name for entry in path.iterdir()} - {*FILES, *(f"new.{name}" for name in FILES)}
    for name in sorted(names, key=lambda name: (name == LOCK, name)):
        if name == LOCK or not (new / name).exists():
            os.replace(path / name, new / name)


def _settle_older_version(path: Path, new: Path) -> None:
    """Moves the new run that an earlier version wrote, inside the folder, to where it is written now."""
    inside = path / OLDER_NEW
    if (inside / CONFIG).is_file():
        if not new.exists():
            os.rename(inside, new)
    elif (inside / SCORES).is_file():  # complete, and its files were already replacing the old ones, config.json first
        for name in FILES:
            if (inside / name).is_file():
                os.replace(inside / name, path / name)
    clear(inside)

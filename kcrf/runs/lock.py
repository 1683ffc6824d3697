"""Keeps two processes from writing one run folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["LOCK", "locked"]

LOCK = ".lock"


@contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Keeps other processes from writing a run folder, by the file `.lock` inside it.

    The folder is made if it does not exist; then it is removed in the end if it is empty. The lock ends with its
    process, however that ends. Windows has no such locks: nothing is locked there.

    Raises:
        BlockingIOError: Another process holds the lock.
    """
    folder = Path(path)
    is_new = not folder.exists()
    try:
        with _lock_file(folder):
            yield
    finally:
        if is_new:
            with suppress(OSError):  # it is not empty
                folder.rmdir()


@contextmanager
def _lock_file(folder: Path) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:
        folder.mkdir(parents=True, exist_ok=True)
        yield
        return
    path = folder / LOCK
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            file = open(path, "a+", encoding="ascii")
        except FileNotFoundError:
            continue  # another process removed the folder after we made it
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                message = f"{folder}: another process trains into this folder. Received: process {file.read() or '?'}"
                raise BlockingIOError(message) from None
            if not path.exists() or not os.path.samestat(os.stat(path), os.fstat(file.fileno())):
                continue  # its owner removed the file after we opened it and before we locked it
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return

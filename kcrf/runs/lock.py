"""A lock that prevents two processes from writing into the same run folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kcrf.files import HAS_LOCKS, try_lock

LOCK = ".lock"


@contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """A context in which no other process can write into a run folder. Locks the file `.lock` in the folder. A folder
    that does not exist is created, and removed at the end if it is empty. The lock is released when the process ends,
    even if it is killed. On Windows, which has no such locks, nothing is locked."""
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
    if not HAS_LOCKS:
        folder.mkdir(parents=True, exist_ok=True)
        yield
        return
    path = folder / LOCK
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            file = open(path, "a+", encoding="ascii")
        except FileNotFoundError:
            continue  # another process removed the folder after it was created
        with file:
            if not try_lock(file):
                file.seek(0)
                owner = file.read() or "?"
                raise BlockingIOError(f"{folder}: another process trains into this folder. Received: process {owner}")
            if not path.exists() or not os.path.samestat(os.stat(path), os.fstat(file.fileno())):
                continue  # its owner removed the file between opening and locking
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return

"""Keeps two processes from writing one run folder."""

import os
from contextlib import contextmanager
from pathlib import Path

__all__ = ["locked"]


def _with_name(path):
    """The path of a folder, with a name even where it is ".": a file beside it needs that name."""
    path = Path(path)
    return path if path.name not in ("", "..") else path.resolve()


@contextmanager
def locked(path):
    """Keeps other processes from writing a run folder, by the file `.<folder>.lock` beside it.

    The lock ends with its process, however that ends. Windows has no such locks: nothing is locked there.

    Raises:
        BlockingIOError: Another process holds the lock.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    path = _with_name(path)
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
                continue  # its owner removed the file after we opened it and before we locked it
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            try:
                yield
            finally:
                name.unlink(missing_ok=True)
            return

"""A temporary folder for files that are written by another library and renamed once they are complete."""

import tempfile
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def folder_aside(path):
    """A context with a temporary folder next to a path, on the same file system, which is removed at the end."""
    folder = Path(path).absolute().parent
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".writing-") as name:
        yield Path(name)

"""Files that a library writes itself: made in a folder aside, then renamed."""

import tempfile
from contextlib import contextmanager
from pathlib import Path

__all__ = ["folder_aside"]


@contextmanager
def folder_aside(path):
    """A folder beside a path, gone in the end."""
    folder = Path(path).absolute().parent
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".writing-") as name:
        yield Path(name)

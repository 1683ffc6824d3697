"""The output of a command that can be interrupted and continued: never a half result, never results of two inputs."""

import json
import sys
import time
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

from kcrf.files import read_json, try_lock, write_aside

_SECONDS = 1  # between two notes of how far the input was read
# The results do not depend on these; the task is that of the model, on which they do.
_NO_PART = ("out", "resume", "overwrite", "workers", "batch_size", "run", "command", "model_task")


@contextmanager
def open_output(options, in_blocks):
    """The file to write to, a context, and its `_Note`, or None where there is nothing to resume.

    A file that exists is written to only if it is the unfinished output of the same command, with --resume, or with
    --overwrite. What is replaced stays until there is a result: the caller calls `note.begin(file)` before it writes.
    """
    if options.out is None:
        if options.resume:
            raise ValueError("--resume needs --out FILE. Received: no --out")
        if sys.stdout is None:
            raise ValueError("needs --out FILE, or standard output. Received: neither")
        yield sys.stdout.buffer, None
        return
    path = Path(options.out)
    if path.is_dir():
        raise IsADirectoryError(f"{path}: needs a file to write. Received: a folder")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"{path}: needs a folder that exists")
    if path.exists() and not path.is_file():  # a device or a pipe, as /dev/stdout
        if options.resume:
            raise ValueError(f"--resume needs --out with a file. Received: {path}")
        with open(path, "wb") as file:
            yield file, None
        return
    if path.exists():
        with open(path, "rb") as file:
            _lock(path, file)
    note = _Note(path, _about(options))
    size = note.open(options.resume, options.overwrite, in_blocks)
    with open(path, "r+b" if path.exists() else "wb") as file:
        _lock(path, file)
        if note.is_begun:
            file.truncate(size)
        file.seek(size)
        try:
            yield file, note
            note.begin(file)  # of an input without texts
        except BaseException as error:
            if not note.is_begun:
                raise
            if not file.tell():  # no result that --resume could keep
                path.unlink(missing_ok=True)
                note.end()
            elif isinstance(error, KeyboardInterrupt):
                raise KeyboardInterrupt("continue with the same command and --resume") from error
            raise
    note.end()


def _lock(path, file):
    """Locks an open output until it is closed.

    Raises:
        BlockingIOError: Another process writes to it.
    """
    if not try_lock(file):
        raise BlockingIOError(f"{path}: another process writes to this file")


def _about(options):
    """The values on which results depend besides the input: the options, and when the model was written."""
    model = Path(options.model)
    written = max((path.stat().st_mtime_ns for path in [model, *model.glob("*")] if path.is_file()), default=0)
    about = {name: value for name, value in vars(options).items() if name not in _NO_PART}
    return {"command": options.command, **about, "model written": written}


class _Note:
    """A file next to an unfinished output: what its results depend on, and how far the input was read for them.

    Args:
        path: The output.
        about: Plain values on which the results depend.

    Attributes:
        results: How many results the output had when the command began.
        is_begun: Whether the output is that of this command, and no longer what it replaces.
    """

    def __init__(self, path, about):
        self._path, self.results, self.is_begun = path, 0, True
        self._about = json.loads(json.dumps(about))  # as it is read again: tuples are lists
        self._file, self._read, self._written = path.with_name(f"{path.name}.unfinished"), None, 0.0

    def open(self, resume, overwrite, in_blocks):
        """Begins the file, unless an output is replaced, or reads that of an interrupted command.

        Args:
            resume: Whether to resume what an interrupted command wrote; without one, the output begins.
            overwrite: Whether an existing output is replaced.
            in_blocks: Whether results are blocks of lines.

        Returns:
            How many bytes of the output are kept.

        Raises:
            FileExistsError: The output exists, and is neither replaced nor resumed.
        """
        if resume and self._file.exists():
            return self._resume(in_blocks)
        if self._file.exists() and not overwrite:
            raise FileExistsError(
                f"{self._path}: has results of an interrupted command. --resume continues it, --overwrite begins anew"
            )
        if self._path.exists():
            if not overwrite:
                reason = f": it is no unfinished output, without {self._file.name}" if resume else ""
                raise FileExistsError(f"{self._path}: the file exists{reason}; --overwrite replaces it")
            self.is_begun = False
        else:
            self._write()
        return 0

    def begin(self, file):
        """Empties an output that is replaced, and begins the file, if that has not been done."""
        if not self.is_begun:
            self.is_begun = True
            file.truncate(0)  # before the note, by which --resume would take the old lines for results
            self._write()

    def _resume(self, in_blocks):
        """Reads the file and the output, and returns the bytes of its whole results: a line after them was cut off."""
        before = read_json(self._file)
        self._read = before.pop("read", None)
        names = sorted(self._about.keys() | before.keys())
        if changed := [name for name in names if self._about.get(name) != before.get(name)]:
            raise ValueError(
                f"{self._path}: --resume needs the same options and model as before. Received: another {changed[0]}"
            )
        size = position = 0
        with suppress(FileNotFoundError), open(self._path, "rb") as file:
            for line in file:
                position += len(line)
                if line == b"\n" or not in_blocks and line.endswith(b"\n"):
                    self.results, size = self.results + 1, position
        return size

    def skip(self, items, lines):
        """Reads the items whose results the output has, and checks that they are those of before."""
        noted = self._read["items"] if self._read and self._read["items"] <= self.results else 0
        skipped = sum(1 for _ in islice(items, noted))
        if skipped == noted > 0 and lines.digest() != self._read["digest"]:
            raise ValueError(f"--resume needs the same input. Received: other texts among the first {noted:,}")
        if skipped + sum(1 for _ in islice(items, self.results - noted)) < self.results:
            raise ValueError(f"--resume needs the same input. Received: fewer texts than {self._path} has results")

    def update(self, place):
        """Notes a place up to which results are written, at most once a second."""
        if self._read is None or time.monotonic() - self._written > _SECONDS:
            self._read = place._asdict()
            self._write()

    def _write(self):
        text = json.dumps({**self._about, "read": self._read}, indent=1)
        write_aside(self._file, lambda place: place.write_text(text, encoding="utf-8"))
        self._written = time.monotonic()

    def end(self):
        """Removes the file: the output is complete."""
        self._file.unlink(missing_ok=True)

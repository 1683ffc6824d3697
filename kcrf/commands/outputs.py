"""The output of a command that can be interrupted and resumed: never a half result, never results of two inputs."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from kcrf.commands.parsers import check_out
from kcrf.files import read_json, try_lock, write_aside

# Results do not depend on these options. The task comes from the model, on which they do.
_NO_PART = ("out", "resume", "overwrite", "workers", "batch_size", "run", "command", "opened", "model_task")


@contextmanager
def open_output(options: Any, in_blocks: bool) -> Iterator[tuple[IO[bytes] | None, int]]:
    """A context with the file to write to, None if all is written, and the number of results that it already has.
    Results are written to a file next to --out whose name ends in `.part`, which replaces --out when all are written.
    After an interruption, --resume continues this file."""
    if options.out is None:
        if options.resume:
            raise ValueError("--resume needs --out FILE. Received: no --out")
        if sys.stdout is None:
            raise ValueError("needs --out FILE, or standard output. Received: neither")
        yield sys.stdout.buffer, 0
        return
    path = Path(options.out)
    check_out(options.out, overwrite=True)  # a file that exists may be one to resume
    if path.exists() and not path.is_file():  # a device or a pipe, as /dev/stdout
        if options.resume:
            raise ValueError(f"--resume needs --out with a file. Received: {path}")
        with open(path, "wb") as file:
            yield file, 0
        return
    with _part_of(path, options, in_blocks) as opened:
        yield opened


@contextmanager
def _part_of(path: Path, options: Any, in_blocks: bool) -> Iterator[tuple[IO[bytes] | None, int]]:
    part, note = path.with_name(f"{path.name}.part"), path.with_name(f"{path.name}.part.json")
    existed = part.exists()
    if path.exists() and not options.overwrite and not (options.resume and existed):
        if not options.resume:
            raise FileExistsError(f"{path}: the file exists; --overwrite replaces it")
        with open(path, "rb") as complete:
            count, _ = _whole_results(complete, in_blocks)
        yield None, count
        return
    resumes = existed and options.resume
    with open(part, "r+b" if existed else "wb") as file:
        if not try_lock(file):
            raise BlockingIOError(f"{part}: another process writes to this file")
        if existed and not resumes and not options.overwrite:
            raise FileExistsError(
                f"{part}: has results of an interrupted command. --resume continues it, --overwrite begins anew"
            )
        about = json.loads(json.dumps(_about(options)))  # as it is read again: tuples are lists
        if resumes:
            _check_same(path, about, read_json(note))
        count, size = _whole_results(file, in_blocks) if resumes else (0, 0)
        file.truncate(size)  # a result after the whole ones was cut off
        file.seek(size)
        write_aside(note, lambda place: place.write_text(json.dumps(about, indent=1), encoding="utf-8"))
        try:
            yield file, count
        except BaseException as error:
            if not file.tell():  # no result that --resume could keep
                part.unlink(missing_ok=True)
                note.unlink(missing_ok=True)
            elif isinstance(error, KeyboardInterrupt):
                raise KeyboardInterrupt("continue with the same command and --resume") from error
            raise
    os.replace(part, path)
    note.unlink(missing_ok=True)


def _about(options: Any) -> dict[str, Any]:
    """The values on which results depend: the options, and when the model and the input were written."""
    model = Path(options.model)
    written = max((path.stat().st_mtime_ns for path in [model, *model.glob("*")] if path.is_file()), default=0)
    about = {name: value for name, value in vars(options).items() if name not in _NO_PART}
    status = os.stat(options.file) if options.file and os.path.isfile(options.file) else None
    about["input"] = status and [status.st_size, status.st_mtime_ns]
    return {"command": options.command, **about, "model written": written}


def _check_same(path: Path, about: dict[str, Any], before: dict[str, Any]) -> None:
    names = sorted(about.keys() | before.keys())
    if changed := [name for name in names if about.get(name) != before.get(name)]:
        raise ValueError(
            f"{path}: --resume needs the same options, input and model as before. Received: another {changed[0]}"
        )


def _whole_results(file: IO[bytes], in_blocks: bool) -> tuple[int, int]:
    """The number of whole results in a file, and their bytes."""
    count = size = position = 0
    for line in file:
        position += len(line)
        if line == b"\n" or not in_blocks and line.endswith(b"\n"):
            count, size = count + 1, position
    return count, size

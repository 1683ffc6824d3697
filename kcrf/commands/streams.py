"""Long input: results in its order, with little memory, by several processes, continued after an interruption."""

import errno
import json
import multiprocessing
import os
import signal
import stat
import sys
import threading
import time
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

from kcrf.files import read_json, write_aside

__all__ = ["Lines", "add_stream_options", "is_same_file", "write_results"]

_ITEMS, _CHARACTERS = 1000, 200_000  # of a chunk, at most, but for one long text
_SECONDS = 60  # between two lines of progress where standard error is no terminal
_NO_PART = ("out", "resume", "workers", "batch_size", "run", "command")  # of what results depend on


def add_stream_options(parser):
    """Adds the options of a command that writes a result for each text."""
    parser.add_argument("--out", metavar="FILE", help="Where to write. [standard output]")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="Continue --out FILE where an interrupted command with the same options has left it. [no]",
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=1,
        metavar="N",
        help="Processes that compute, each with a model of its own. [%(default)s]",
    )


class Lines:
    """The lines of a file, decoded one after the other, and how far they have been read.

    Args:
        source: A binary file.
        name: Its name in error messages.

    Attributes:
        size: Bytes of the file; None for a pipe.
        position: Bytes of the lines that were read.
    """

    def __init__(self, source, name):
        from kcrf.corpora.lines import decode_lines  # NumPy comes with it, which `kcrf --help` need not import

        self._lines, self.position = decode_lines(self._counted(source), name), 0
        try:
            size = os.fstat(source.fileno()).st_size
        except OSError:  # not a file of the system
            size = 0
        self.size = size or None

    def _counted(self, source):
        for line in source:
            self.position += len(line)
            yield line

    def __iter__(self):
        return self._lines

    def __next__(self):
        return next(self._lines)


def is_same_file(source, path):
    """Whether an open file and a path are the same regular file, which writing would empty before it is read."""
    try:
        status = os.fstat(source.fileno())
        return stat.S_ISREG(status.st_mode) and os.path.samestat(status, os.stat(path))
    except OSError:  # not a file of the system, or there is nothing at the path
        return False


def write_results(lines, items, make, options, counted="characters", in_blocks=False):
    """Writes the result of each item, in their order, to `options.out` or standard output.

    Args:
        lines: The `Lines` that the items are made of, for the progress.
        items: Iterable of texts.
        make: A function of a module that makes of the options a function `process(items, on_batch)`. That returns a
            string for each item, and calls `on_batch` with a number after each batch.
        options: The options of the command.
        counted: What that number counts. Defaults to "characters".
        in_blocks: Whether results are blocks of lines, none of them empty but the last, and not single lines. Defaults
            to False.
    """
    if options.workers < 1:
        raise ValueError(f"--workers must be at least 1. Received: {options.workers}")
    items = iter(items)
    with _naming(options.out or "standard output"), _output(options, in_blocks) as (file, done):
        if sum(1 for _ in islice(items, done)) < done:
            raise ValueError(f"--resume needs the same input. Received: fewer texts than {options.out} has results")
        with _Progress(lines, options.command, counted) as progress:
            for text, count, position in _computed(_chunks(items, lines), make, options, progress):
                file.write(text.encode("utf-8"))
                file.flush()
                progress.update(count, position)


def _chunks(items, lines):
    """Yields lists of some items, and how far the lines were read for them."""
    while first := list(islice(items, 1)):
        chunk, size = first, _length(first[0])
        while len(chunk) < _ITEMS and size < _CHARACTERS and (more := list(islice(items, 1))):
            chunk += more
            size += _length(more[0])
        yield chunk, lines.position


def _length(item):
    """How many characters a text, a pair of texts or a `Sentence` has."""
    return len(item) if isinstance(item, str) else sum(map(len, item)) if isinstance(item, tuple) else len(item.text)


# -- computing


def _computed(chunks, make, options, progress):
    """Yields, in the order of the chunks, their results as one text, a number for the progress, and the position."""
    if options.workers > 1:
        yield from _computed_by_workers(chunks, make, options)
        return
    process = None
    for items, position in chunks:
        process = process or make(options)
        yield _as_text(process(items, progress.update)), 0, position


def _as_text(results):
    return "".join(f"{result}\n" for result in results)


def _computed_by_workers(chunks, make, options):
    """The same, by several processes. Two chunks for each wait or are computed at a time: memory stays flat."""
    threads = str(max(1, (os.cpu_count() or 1) // options.workers))
    for name in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS"):
        os.environ.setdefault(name, threads)  # which backends read when they are imported
    pool = ProcessPoolExecutor(options.workers, multiprocessing.get_context("spawn"), _begin_worker)
    running = deque()
    try:
        for items, position in chunks:
            running.append((pool.submit(_work, make, options, items), position))
            if len(running) == 2 * options.workers:
                yield _result(*running.popleft())
        while running:
            yield _result(*running.popleft())
    except BrokenProcessPool:
        rest = "; --resume continues" if options.out else ""
        raise ChildProcessError(f"a worker was ended from outside, perhaps for lack of memory{rest}") from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _result(future, position):
    return (*future.result(), position)


def _begin_worker():
    """Ctrl-C reaches workers too, but the parent ends them; without a parent they end themselves."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent():
    multiprocessing.parent_process().join()
    os._exit(1)


_processes = {}  # of a worker: what it has made


def _work(make, options, items):
    """The results of some items as one text, and a number for the progress."""
    if make not in _processes:
        _processes[make] = make(options)
    counts = []
    return _as_text(_processes[make](items, counts.append)), sum(counts)


# -- the output


@contextmanager
def _naming(name):
    """A context in which an error of a full disk, which does not tell the file, gets its name."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT) and error.filename is None:
            error.filename = name
        raise


@contextmanager
def _output(options, in_blocks):
    """The file to write to, a context, and how many results it has. Until it is complete, a file beside it says so."""
    if options.out is None:
        if options.resume:
            raise ValueError("--resume needs --out FILE. Received: no --out")
        if sys.stdout is None:
            raise ValueError("needs --out FILE, or standard output. Received: neither")
        yield sys.stdout.buffer, 0
        return
    path = Path(options.out)
    if path.exists() and not path.is_file():  # a device or a pipe, as /dev/stdout
        if options.resume:
            raise ValueError(f"--resume needs --out with a file. Received: {path}")
        with open(path, "wb") as file:
            yield file, 0
        return
    note = path.with_name(f"{path.name}.unfinished")
    about, done, size = _about(options), 0, 0
    if options.resume:
        done, size = _resumed(path, note, about, in_blocks)
    elif note.exists():
        raise FileExistsError(
            f"{path}: has the results of an interrupted command. --resume continues it; without {note.name} it is "
            "written anew"
        )
    write_aside(note, lambda place: place.write_text(json.dumps(about, indent=1), encoding="utf-8"))
    with open(path, "r+b" if options.resume and path.exists() else "wb") as file:
        file.truncate(size)
        file.seek(size)
        yield file, done
    note.unlink()


def _about(options):
    """What results depend on: the options, the input and when the model was written."""
    model = Path(options.model)
    written = max((path.stat().st_mtime_ns for path in [model, *model.glob("*")] if path.is_file()), default=0)
    about = {name: value for name, value in vars(options).items() if name not in _NO_PART}
    return {"command": options.command, **about, "model written": written}


def _resumed(path, note, about, in_blocks):
    """How many results an unfinished file has, and their size in bytes: what is behind them was cut off."""
    if not note.exists():
        raise FileNotFoundError(
            f"{path}: --resume needs an interrupted command that wrote it. Received: no {note.name}"
        )
    before = read_json(note)
    changed = sorted(name for name in about.keys() | before.keys() if about.get(name) != before.get(name))
    if changed:
        raise ValueError(f"{path}: --resume needs the same options and model as before. Received: another {changed[0]}")
    count = size = position = 0
    with suppress(FileNotFoundError), open(path, "rb") as file:
        for line in file:
            position += len(line)
            if line == b"\n" or not in_blocks and line.endswith(b"\n"):
                count, size = count + 1, position
    return count, size


# -- progress


class _Progress:
    """Shows how much is done, how fast, and when the rest will be done: a bar on a terminal, else a line a minute.

    Args:
        lines: `Lines`; without a size the time left is not known.
        title: What is done.
        counted: What is counted, in the plural.
    """

    def __init__(self, lines, title, counted):
        self._lines, self._title, self._counted = lines, title, counted
        self._count, self._bar = 0, None

    def __enter__(self):
        self._begin = self._shown = time.monotonic()
        self._skipped = self._lines.position  # by --resume
        self._bar = _bar()
        self._task = self._bar.add_task(self._title, total=self._lines.size, completed=self._skipped, rate="")
        self._bar.start()
        return self

    def __exit__(self, *error):
        self._bar.stop()

    def update(self, count, position=None):
        """Adds to what is counted; `position` is how far the lines are done."""
        now = time.monotonic()
        self._count += count
        rate = f"{self._count / max(now - self._begin, 1e-9):,.0f} {self._counted}/s"
        self._bar.update(self._task, completed=position, rate=rate)
        if position is None or not self._bar.disable or now - self._shown < _SECONDS:
            return
        self._shown = now
        parts = [f"{self._count:,} {self._counted}", rate]
        if self._lines.size:
            parts[:0] = [f"{position / self._lines.size:.1%}"]
            rest = (self._lines.size - position) / max(position - self._skipped, 1)
            parts += [f"{_clock((now - self._begin) * rest)} left"]
        with suppress(OSError):  # nobody reads it any more
            print(f"kcrf {self._title}: {', '.join(parts)}", file=sys.stderr, flush=True)


def _clock(seconds):
    """A time as hours, minutes and seconds.

    >>> _clock(3725.4)
    '1:02:05'
    """
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def _bar():
    """A rich progress bar on standard error, which shows nothing if that is no terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, disable=not console.is_terminal)

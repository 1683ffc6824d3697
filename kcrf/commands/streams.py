"""Long input: results in its order, with little memory, by several processes, resumed after an interruption."""

from __future__ import annotations

import multiprocessing
import os
import signal
import stat
import sys
import threading
import time
from argparse import Namespace
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from kcrf.commands.outputs import open_output
from kcrf.commands.parsers import OVERWRITE, CommandParser, declare
from kcrf.progress_bars import print_note

_ITEMS, _CHARACTERS = 1000, 200_000  # of a chunk, at most, but for one long text
_SECONDS = 60  # between two lines of progress where standard error is no terminal

Process = Callable[[list[Any], Callable[[int], Any]], list[str]]  # the results of some items, and how many are done
Make = Callable[[Namespace], Process]
_OUT = "--out FILE  Where to write; a file that does not exist. [standard output]"
_EXISTING = f"""
--resume  Resume --out FILE where an interrupted command with the same options left it; begin it if there is none. [no]
{OVERWRITE}
"""
_WORKERS = "--workers N:1  Processes that compute, each with its own model. [%(default)s]"


def add_stream_options(parser: CommandParser) -> None:
    """Adds the options of a command that writes a result for each text."""
    declare(parser, _OUT)
    declare(parser.add_mutually_exclusive_group(), _EXISTING)
    declare(parser, _WORKERS)


class Lines:
    """The lines of a file, decoded one after the other, with its `name`, `size` (or None) and `position` in bytes."""

    def __init__(self, source: IO[bytes], name: str) -> None:
        from kcrf.corpora.lines import decode_lines  # NumPy comes with it, which `kcrf --help` need not import

        self.source, self.name = source, name
        self._lines, self.position = decode_lines(self._counted(source), name), 0
        try:
            size = os.fstat(source.fileno()).st_size
        except OSError:  # not a file of the system
            size = 0
        self.size: int | None = size or None

    def _counted(self, source: IO[bytes]) -> Iterator[bytes]:
        for line in source:
            self.position += len(line)
            yield line

    def __iter__(self) -> Iterator[str]:
        return self._lines

    def __next__(self) -> str:
        return next(self._lines)


def is_same_file(source: IO[bytes], path: str) -> bool:
    """Whether an open file and a path are the same regular file, which writing would empty before it is read."""
    try:
        status = os.fstat(source.fileno())
        return stat.S_ISREG(status.st_mode) and os.path.samestat(status, os.stat(path))
    except OSError:  # not a file of the system, or there is nothing at the path
        return False


def write_results(
    lines: Lines,
    items: Iterable[Any],
    make: Make,
    options: Namespace,
    counted: str = "characters",
    in_blocks: bool = False,
) -> None:
    """Writes the result of each item, in their order, to `options.out` or standard output."""
    if options.workers < 1:
        raise ValueError(f"--workers must be at least 1. Received: {options.workers}")
    items = iter(items)
    if options.workers > 1:
        options.opened = None  # each worker opens the model
    with open_output(options, in_blocks) as (file, written):
        if sum(1 for _ in islice(items, written)) < written:
            raise ValueError(f"--resume needs the same input. Received: fewer texts than {options.out} has results")
        if file is None:
            _check_complete(options.out, items)
            return
        is_seen = options.out is None and sys.stdout.isatty()  # results in a terminal are their own progress
        with Progress(lines, options.command, counted, is_seen) as progress:
            for text, count, position in _computed(_chunks(items, lines), make, options, progress):
                file.write(text.encode("utf-8"))
                file.flush()
                progress.update(count, position)


def _check_complete(out: str, items: Iterator[Any]) -> None:
    """Raises FileExistsError if there are more items than a complete file has results."""
    if any(True for _ in items):
        reason = f"it is complete, without {Path(out).name}.part, and the input has more texts"
        raise FileExistsError(f"{out}: the file exists: {reason}; --overwrite replaces it")
    print_note(f"{out}: complete; nothing is left to resume")


def _chunks(items: Iterable[Any], lines: Lines) -> Iterator[tuple[list[Any], int]]:
    """Yields lists of some items, and the bytes of the lines that were read for them."""
    chunk, size = [], 0
    for item in items:
        chunk.append(item)
        size += _length(item)
        if len(chunk) == _ITEMS or size >= _CHARACTERS:
            yield chunk, lines.position
            chunk, size = [], 0
    if chunk:
        yield chunk, lines.position


def _length(item: Any) -> int:
    """How many characters a text, a pair of texts or a `Sentence` has."""
    return len(item) if isinstance(item, str) else sum(map(len, item)) if isinstance(item, tuple) else len(item.text)


# -- computing


def _computed(chunks: Any, make: Make, options: Namespace, progress: Progress) -> Iterator[tuple[str, int, int]]:
    """Yields, in the order of the chunks, the results as one text, a number for the progress, and the bytes read."""
    if options.workers > 1:
        yield from _computed_by_workers(chunks, make, options)
        return
    process = None
    for items, position in chunks:
        process = process or make(options)
        yield _as_text(process(items, progress.update)), 0, position


def _as_text(results: Iterable[str]) -> str:
    return "".join(f"{result}\n" for result in results)


def _computed_by_workers(chunks: Any, make: Make, options: Namespace) -> Iterator[tuple[str, int, int]]:
    """The same, by several processes. Two chunks for each wait or are computed at a time: memory stays flat."""
    threads = str(max(1, (os.cpu_count() or 1) // options.workers))
    for name in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS"):
        os.environ.setdefault(name, threads)  # which backends read when they are imported
    pool = ProcessPoolExecutor(options.workers, multiprocessing.get_context("spawn"), _begin_worker)
    running: deque[tuple[Future[tuple[str, int]], int]] = deque()
    try:
        for items, position in chunks:
            running.append((pool.submit(_work, make, options, items), position))
            if len(running) == 2 * options.workers:
                yield _result(*running.popleft())
        while running:
            yield _result(*running.popleft())
    except BrokenProcessPool:
        remaining = "; --resume continues" if options.out else ""
        raise ChildProcessError(f"a worker was ended from outside, perhaps for lack of memory{remaining}") from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _result(future: Future[tuple[str, int]], position: int) -> tuple[str, int, int]:
    return (*future.result(), position)


def _begin_worker() -> None:
    """Ctrl-C reaches workers too, but the parent ends them; without a parent they end themselves."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
    os._exit(1)


_processes: dict[Make, Process] = {}  # of a worker: what it has made


def _work(make: Make, options: Namespace, items: list[Any]) -> tuple[str, int]:
    """The results of some items as one text, and a number for the progress."""
    if make not in _processes:
        _processes[make] = make(options)
    counts: list[int] = []
    return _as_text(_processes[make](items, counts.append)), sum(counts)


# -- progress


class Progress:
    """Shows the progress, the speed and the remaining time: a bar on a terminal, else one line per minute."""

    def __init__(self, lines: Lines, title: str, counted: str, is_hidden: bool = False) -> None:
        self._lines, self._title, self._counted, self._is_hidden = lines, title, counted, is_hidden
        self._count = 0

    def __enter__(self) -> Progress:
        from rich.progress import TaskProgressColumn, TextColumn

        from kcrf.progress_bars import bar

        self._begin = self._shown = time.monotonic()
        self._skipped = self._lines.position  # by --resume
        self._bar = bar(TaskProgressColumn(), TextColumn("{task.fields[rate]}"))
        self._bar.disable |= self._is_hidden
        self._task = self._bar.add_task(self._title, total=self._lines.size, completed=self._skipped, rate="")
        self._bar.start()
        return self

    def __exit__(self, *error: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._bar.stop()

    def update(self, count: int, position: int | None = None) -> None:
        """Adds to what is counted; `position` is how far the lines are done."""
        now = time.monotonic()
        self._count += count
        rate = f"{self._count / max(now - self._begin, 1e-9):,.0f} {self._counted}/s"
        self._bar.update(self._task, completed=position, rate=rate)
        if position is None or self._is_hidden or not self._bar.disable or now - self._shown < _SECONDS:
            return
        self._shown = now
        parts = [f"{self._count:,} {self._counted}", rate]
        if self._lines.size:
            parts[:0] = [f"{position / self._lines.size:.1%}"]
            remaining = (self._lines.size - position) / max(position - self._skipped, 1)
            parts += [f"{_clock((now - self._begin) * remaining)} left"]
        with suppress(OSError):  # nobody reads it any more
            print(f"kcrf {self._title}: {', '.join(parts)}", file=sys.stderr, flush=True)


def _clock(seconds: float) -> str:
    """A time as hours, minutes and seconds.

    >>> _clock(3725.4)
    '1:02:05'
    """
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"

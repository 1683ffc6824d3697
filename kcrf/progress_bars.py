"""Progress and notes on standard error."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

_IS_QUIET = False

if TYPE_CHECKING:  # rich is slow to import
    from rich.progress import Progress, ProgressColumn


def bar(*done: "ProgressColumn") -> "Progress":
    """A rich progress bar on standard error; hidden if standard error is not a terminal."""
    from rich import progress
    from rich.console import Console

    console = Console(stderr=True)
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        *(done or (progress.MofNCompleteColumn(),)),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
    )
    return progress.Progress(*columns, console=console, disable=_IS_QUIET or not console.is_terminal)


@contextmanager
def quiet(is_quiet: bool) -> Iterator[None]:
    """A context in which nothing is shown, if `is_quiet`."""
    global _IS_QUIET
    before, _IS_QUIET = _IS_QUIET, is_quiet
    try:
        yield
    finally:
        _IS_QUIET = before


def print_note(text: str) -> None:
    """Prints a line to standard error. Errors, such as a closed pipe, are ignored."""
    with suppress(OSError):
        if not _IS_QUIET:
            print(text, file=sys.stderr, flush=True)

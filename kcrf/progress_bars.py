"""Progress on standard error."""

import sys
from contextlib import suppress

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

__all__ = ["bar", "print_note"]


def bar(*done):
    """A rich progress bar on standard error, which shows nothing if that is no terminal.

    Args:
        done: The columns that say how much is done, after the bar. Defaults to "M/N".
    """
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        *(done or (MofNCompleteColumn(),)),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, disable=not console.is_terminal)


def print_note(text):
    """Prints a line to standard error. If nobody reads that any more, the work goes on without."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)

"""Progress and notes on standard error."""

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # rich is slow to import
    from rich.progress import Progress, ProgressColumn


def bar(*done: "ProgressColumn") -> "Progress":
    """A rich progress bar on standard error; hidden if standard error is not a terminal.

    Args:
        done: The columns after the bar that show the progress. Defaults to "M/N".
    """
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
    return progress.Progress(*columns, console=console, disable=not console.is_terminal)


def print_note(text: str) -> None:
    """Prints a line to standard error. Errors, such as a closed pipe, are ignored."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)

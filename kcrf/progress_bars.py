"""Progress on standard error."""

import sys
from contextlib import suppress

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


def bar(*done: ProgressColumn) -> Progress:
    """A rich progress bar on standard error; hidden if standard error is not a terminal.

    Args:
        done: The columns after the bar that show the progress. Defaults to "M/N".
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


def print_note(text: str) -> None:
    """Prints a line to standard error. Errors, such as a closed pipe, are ignored."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)

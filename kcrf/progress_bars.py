"""Progress and notes on standard error, or in a notebook."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

_IS_QUIET = False

if TYPE_CHECKING:  # rich is slow to import
    from rich.progress import Progress, ProgressColumn


def bar(*done: "ProgressColumn") -> "Progress":
    """A rich progress bar on standard error; hidden if standard error is not a terminal, and in a notebook."""
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
    is_hidden = _IS_QUIET or console.is_jupyter or not console.is_terminal
    return progress.Progress(*columns, console=console, disable=is_hidden)


def is_notebook() -> bool:
    """Whether this is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


def is_watched() -> bool:
    """Whether a person sees progress: in a terminal or a notebook."""
    return not _IS_QUIET and (is_notebook() or bool(sys.stderr) and sys.stderr.isatty())


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
    """Prints a line to standard error; in a notebook, where that is red, to the cell. Ignores a closed pipe."""
    with suppress(OSError):
        if not _IS_QUIET:
            print(text, file=sys.stdout if is_notebook() else sys.stderr, flush=True)

"""Optional packages: what is missing, and the line that installs it."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needs_extra(extra: str, what: str) -> Iterator[None]:
    """Turns a missing package into an error that says how to install it.

    >>> with needs_extra("serve", "kcrf serve"):
    ...     import no_such_package
    Traceback (most recent call last):
    ImportError: kcrf serve needs the package no_such_package, which is not installed: pip install 'kcrf[serve]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "kcrf"):
            raise
        message = f"{what} needs the package {package}, which is not installed: pip install 'kcrf[{extra}]'"
        raise ImportError(message, name=package) from None

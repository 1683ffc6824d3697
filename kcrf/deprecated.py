"""Old places and old names, for one release: they work, and a warning says the new ones."""

import warnings
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar

__all__ = ["moved_names", "renamed_arguments"]

Function = TypeVar("Function", bound=Callable[..., Any])


def moved_names(module, places):
    """A `__getattr__` for a module that no longer defines some public names.

    Args:
        module: The name of the module.
        places: A dict from names to the modules that define them now.

    Returns:
        A function that returns what the new module defines and warns with a `DeprecationWarning`. For any other name it
        raises an `AttributeError`.

    >>> moved_names("kcrf.example", {"bmes": "kcrf.tags"})("bmes")().name  # doctest: +SKIP
    'bmes'
    """

    def __getattr__(name):
        """Finds a name in its new place."""
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(f"{module}.{name} is now {places[name]}.{name}", DeprecationWarning, stacklevel=2)
        return getattr(import_module(places[name]), name)

    return __getattr__


def renamed_arguments(**names: str) -> Callable[[Function], Function]:
    """A decorator for a function some of whose keyword arguments have new names.

    Args:
        names: The new name of each old name.

    Returns:
        A decorator. The decorated function takes an argument under its old name too, and warns with a
        `DeprecationWarning`. It raises a `TypeError` if an argument is given under both names.

    >>> renamed_arguments(colour="color")(lambda color: color)(color="red")
    'red'
    """

    def decorate(function):
        @wraps(function)
        def call(*args, **kwargs):
            for old, new in names.items():
                if old in kwargs and new not in kwargs:
                    warnings.warn(f"`{old}` of {function.__name__} is now `{new}`", DeprecationWarning, stacklevel=2)
                    kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return decorate

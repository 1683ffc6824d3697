"""Old places of public names, for one release: the name works there, and a warning says where it is now."""

import warnings
from importlib import import_module

__all__ = ["moved_names"]


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

"""kcrf: sequence labeling with Keras.

`import kcrf.layers` registers the layers, losses, metrics, optimizers and schedules of kcrf with Keras, so that saved
models load without `custom_objects`. `import kcrf` alone does not import Keras: tags, metrics, corpora, tokenizers and
checkpoints work without it.
"""

from importlib import import_module
from types import ModuleType

from kcrf.version import __version__

__all__ = ["__version__"]


def __getattr__(name: str) -> ModuleType:
    """Imports `kcrf.layers` and the other parts when they are first used: `import kcrf` is enough for them."""
    if not name.startswith("_"):
        try:
            return import_module(f"kcrf.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"kcrf.{name}":
                raise
    raise AttributeError(f"module 'kcrf' has no attribute {name!r}")

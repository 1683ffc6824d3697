"""kcrf: sequence labeling with Keras.

`import kcrf.layers` registers the layers, losses, metrics, optimizers and schedules of kcrf with Keras, so that saved
models load without `custom_objects`. `import kcrf` alone does not import Keras: tags, metrics, corpora, tokenizers and
checkpoints work without it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kcrf.version import __version__

if TYPE_CHECKING:
    from kcrf.taggers import render

__all__ = ["__version__", "render"]


def __getattr__(name: str) -> Any:
    """Imports `kcrf.layers` and the other parts when they are first used: `import kcrf` is enough for them."""
    if name == "render":
        return import_module("kcrf.taggers").render
    if not name.startswith("_"):
        try:
            return import_module(f"kcrf.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"kcrf.{name}":
                raise
    raise AttributeError(f"module 'kcrf' has no attribute {name!r}")

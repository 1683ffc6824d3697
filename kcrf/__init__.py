"""kcrf: sequence labelling with Keras.

After `import kcrf`, before or after `import keras`, saved models load without `custom_objects`: the layers, losses and
optimizers are registered with Keras as soon as Keras is imported. `import kcrf` itself does not import Keras, so that
what does not need it starts at once and works without it: tags, metrics, corpora, tokenizers, checkpoints.
"""

from importlib import import_module

from kcrf.registration import register_with_keras
from kcrf.version import __version__

__all__ = ["__version__"]


def __getattr__(name):
    """Imports `kcrf.layers` and the other parts when they are first used: `import kcrf` is enough for them."""
    if not name.startswith("_"):
        try:
            return import_module(f"kcrf.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"kcrf.{name}":
                raise
    raise AttributeError(f"module 'kcrf' has no attribute {name!r}")


def _register():
    from kcrf import layers, models, optimizers  # noqa: F401 (importing them registers their classes)


register_with_keras("kcrf", _register)

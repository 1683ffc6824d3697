"""kcrf: sequence labelling with Keras.

`import kcrf` registers its layers, losses and optimizers with Keras: saved models load without `custom_objects`.
Where Keras cannot run, what needs no Keras works all the same: tags, metrics, corpora, tokenizers, checkpoints.
"""

from kcrf.version import __version__

__all__ = ["__version__"]

try:
    from kcrf import layers, models, optimizers  # noqa: F401 (importing them registers their classes)
except ModuleNotFoundError as error:
    if error.name not in ("keras", "tensorflow", "jax", "torch", "openvino"):
        raise
except ValueError as error:
    if "Unable to import backend" not in str(error):  # Keras does not know it
        raise

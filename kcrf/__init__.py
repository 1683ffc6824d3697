"""kcrf: sequence labelling with Keras.

`import kcrf` registers its layers, losses and optimizers with Keras: saved models load without `custom_objects`.
Where Keras cannot run, what needs no Keras works all the same: tags, metrics, corpora, tokenizers, checkpoints.
"""

__version__ = "0.1.0"

try:
    from kcrf import memm as _memm  # and with it kcrf.layers, on which it builds
    from kcrf import models as _models
    from kcrf import optimizers as _optimizers
except ModuleNotFoundError as error:
    if error.name not in ("keras", "tensorflow", "jax", "torch", "openvino"):
        raise
except ValueError as error:
    if "Unable to import backend" not in str(error):  # Keras does not know it
        raise
else:
    del _memm, _models, _optimizers

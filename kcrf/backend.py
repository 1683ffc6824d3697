"""The only file that knows which Keras runs underneath.

Every other module imports `keras` and `ops` from here and never asks about the host. Today the host is Keras 3 on the
backend that `KERAS_BACKEND` names (TensorFlow, JAX or PyTorch).
"""

import keras
from keras import ops

__all__ = ["Optimizer", "backend_name", "keras", "ops"]

Optimizer = keras.optimizers.Optimizer


def backend_name():
    """The name of the running backend: "tensorflow", "jax" or "torch"."""
    return keras.backend.backend()

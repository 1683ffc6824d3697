"""Seeds that leave TensorFlow's kernels alone."""

import random
import sys

import numpy as np


def set_seeds(number=0):
    """Makes the draws of Python, NumPy, Keras' initializers and dropout, and the order of `fit` the same at each call.

    Keras 3 takes its seeds from Python's generator, tf_keras from a generator of its own, `fit` on TensorFlow and on
    torch from that of the backend. `keras.utils.set_random_seed` sets TensorFlow's in a way that throws away every
    kernel of the process, those in use included: a suite that called it for each model was ended by a segmentation
    fault now and then.
    """
    from kcrf.backend import OLD_HOST

    random.seed(number)
    np.random.seed(number)
    if "tensorflow.python.eager.context" in sys.modules:
        context = sys.modules["tensorflow.python.eager.context"].context()
        context._seed, context._rng = number, random.Random(number)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(number)
    if OLD_HOST:
        from tf_keras.src import backend

        backend._SEED_GENERATOR.generator = random.Random(number)

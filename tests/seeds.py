"""Seeds without TensorFlow's own."""

import random

import numpy as np


def set_seeds(number=0):
    """Makes the draws of Python, NumPy and Keras' initializers and dropout the same at each call.

    Keras 3 takes its seeds from Python's generator, tf_keras from a generator of its own. `keras.utils.set_random_seed`
    sets TensorFlow's seed too, and that throws away every kernel of the process, those in use included: a suite that
    called it for each model was ended by a segmentation fault now and then.
    """
    from kcrf.backend import OLD_HOST

    random.seed(number)
    np.random.seed(number)
    if OLD_HOST:
        from tf_keras.src import backend

        backend._SEED_GENERATOR.generator = random.Random(number)

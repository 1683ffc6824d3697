"""The only file that knows which Keras runs underneath.

Every other module imports `keras`, `ops` and the helpers below and never asks about the host. Today the host is Keras 3
on the backend that `KERAS_BACKEND` names (TensorFlow, JAX or PyTorch).
"""

from collections import defaultdict
from functools import wraps
from inspect import signature

import keras
from keras import ops, tree

__all__ = ["JIT_PAYS_FOR_INFERENCE", "Optimizer", "backend_name", "graph", "keras", "ops", "scan"]

Optimizer = keras.optimizers.Optimizer


def backend_name():
    """The name of the running backend: "tensorflow", "jax" or "torch"."""
    return keras.backend.backend()


def graph(function):
    """Makes `function(emissions, ...)` of tensors run as one graph when called eagerly, traced once per shape.

    Without it, JAX would compile the loops inside anew at every call, and TensorFlow would run them step by step. Takes
    whatever converts to a tensor; an int `k` and None stay what they are.
    """

    def tensor(value):
        return value if value is None or isinstance(value, int) else ops.convert_to_tensor(value)

    @wraps(function)
    def call(emissions, *args, **kwargs):
        return run(tensor(emissions), *map(tensor, args), **{name: tensor(value) for name, value in kwargs.items()})

    run = _compiled(function)
    return call


def _compiled(function):
    if backend_name() == "jax":
        import jax

        return jax.jit(function, static_argnames={"k"} & signature(function).parameters.keys())
    if backend_name() == "tensorflow":
        import tensorflow as tf

        # Retracing less, TensorFlow takes every size that changes for unknown; the number of tags must stay known.
        by_tags = defaultdict(lambda: tf.function(function, autograph=False, reduce_retracing=True))
        return lambda emissions, *args, **kwargs: by_tags[emissions.shape[-1]](emissions, *args, **kwargs)
    return function


# TensorFlow's graphs take any shape as they are, XLA compiles each new one for seconds; JAX has no graph without it.
JIT_PAYS_FOR_INFERENCE = backend_name() == "jax"


def _tensorflow_scan(step, state, inputs, reverse=False):
    """`ops.scan` for TensorFlow, whose own (3.15) fails on several inputs of a length not known beforehand."""
    import tensorflow as tf

    first = tree.flatten(inputs)[0]
    length = first.shape[0] if first.shape[0] is not None else tf.shape(first)[0]
    outputs = tree.map_structure(lambda x: tf.TensorArray(x.dtype, size=length, element_shape=x.shape), state)

    def body(count, state, outputs):
        t = length - 1 - count if reverse else count
        state, output = step(state, tree.map_structure(lambda x: x[t], inputs))
        return count + 1, state, tree.map_structure(lambda array, x: array.write(t, x), outputs, output)

    def unfinished(count, state, outputs):
        return count < length

    _, state, outputs = tf.while_loop(unfinished, body, (0, state, outputs), maximum_iterations=length)
    return state, tree.map_structure(lambda array: array.stack(), outputs)


scan = _tensorflow_scan if backend_name() == "tensorflow" else ops.scan

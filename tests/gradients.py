"""Gradients on whatever backend runs, eager and compiled, so that the tests are written once."""

import numpy as np

from kcrf.backend import backend_name


def value_and_gradients(function, *arrays):
    """The value of `function(*tensors)`, a scalar tensor, and its gradients, as NumPy arrays."""
    return {"tensorflow": _tensorflow, "jax": _jax, "torch": _torch}[backend_name()](function, arrays)


def _tensorflow(function, arrays):
    import tensorflow as tf

    tensors = [tf.constant(x) for x in arrays]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        value = function(*tensors)
    gradients = tape.gradient(value, tensors)
    dense = [
        np.zeros_like(x) if g is None else tf.convert_to_tensor(g).numpy()
        for x, g in zip(arrays, gradients, strict=True)
    ]
    return value.numpy(), dense


def _jax(function, arrays):
    import jax

    value, gradients = jax.value_and_grad(function, argnums=tuple(range(len(arrays))))(*map(jax.numpy.asarray, arrays))
    return np.asarray(value), [np.asarray(g) for g in gradients]


def _torch(function, arrays):
    import torch

    tensors = [torch.tensor(x, requires_grad=True) for x in arrays]
    value = function(*tensors)
    value.backward()
    return value.detach().numpy(), [
        np.zeros_like(x) if t.grad is None else t.grad.numpy() for x, t in zip(arrays, tensors, strict=True)
    ]


def compiled(function):
    """`function` of tensors compiled by the backend: XLA on TensorFlow and JAX, as it is on torch."""
    if backend_name() == "tensorflow":
        import tensorflow as tf

        return tf.function(function, jit_compile=True)
    if backend_name() == "jax":
        import jax

        return jax.jit(function)
    return function

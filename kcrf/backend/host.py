"""Which Keras runs underneath: this folder alone knows.

Every other module imports `keras`, `ops` and the helpers below and never asks about the host. That is Keras 3 on the
backend that `KERAS_BACKEND` names (TensorFlow, JAX or PyTorch), or Keras 2, `tf_keras`, where `TF_KERAS=1` (which
bert4keras reads) or `TF_USE_LEGACY_KERAS=1` (which TensorFlow reads) is set.
"""

import os
from collections import defaultdict
from functools import wraps
from importlib import import_module
from inspect import signature
from types import SimpleNamespace

import numpy as np

OLD_HOST = any(os.environ.get(name) in ("1", "true", "True") for name in ("TF_KERAS", "TF_USE_LEGACY_KERAS"))
os.environ.update({"TF_KERAS": "1", "TF_USE_LEGACY_KERAS": "1"} if OLD_HOST else {})  # one alone would split the house
if OLD_HOST:
    from kcrf.backend import tf_keras as _host
else:
    from kcrf.backend import keras3 as _host

Layer = _host.Layer
Optimizer = _host.Optimizer
Wrapper = _host.Wrapper
batch_stream = _host.batch_stream
call_with = _host.call_with
extensible = _host.extensible
keras = _host.keras
made_trainable = _host.made_trainable
open_scope = _host.open_scope
ops = _host.ops
path_of = _host.path_of
tree = _host.tree

__all__ = [
    "FEW_TAGS",
    "JIT_PAYS_FOR_INFERENCE",
    "Layer",
    "Optimizer",
    "Wrapper",
    "backend_name",
    "batch_stream",
    "call_with",
    "extensible",
    "graph",
    "keras",
    "linear",
    "loop_ops",
    "made_trainable",
    "on_old_host",
    "open_scope",
    "ops",
    "path_of",
    "random_state",
    "scan",
    "set_random_state",
    "tensor_of",
]


def backend_name():
    """The name of the running backend: "tensorflow", "jax" or "torch"."""
    return "tensorflow" if OLD_HOST else keras.backend.backend()


def on_old_host(module):
    """Decorates a function that has another of the same name and arguments in a module for the old host."""
    return lambda function: getattr(import_module(module), function.__name__) if OLD_HOST else function


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


def tensor_of(array):
    """A tensor of a NumPy array that nobody else will write to, in the same memory where its alignment allows that."""
    if backend_name() == "torch":
        import torch

        return torch.from_numpy(array)
    if backend_name() == "jax":
        import jax

        return jax.device_put(array)
    import tensorflow as tf

    if array.ndim == 2 and array.flags.f_contiguous and not array.flags.c_contiguous:
        return tf.transpose(tensor_of(array.T))  # NumPy takes ten times as long for it
    if array.ctypes.data % 64 or not array.flags.c_contiguous:  # TensorFlow takes anything and crashes on it later
        return tf.convert_to_tensor(array)
    return tf.experimental.dlpack.from_dlpack(array.__dlpack__())


def linear(inputs, kernel, bias):
    """`inputs @ kernel + bias`, or without a bias that is None; on torch in one operation that spares a copy."""
    if backend_name() != "torch":
        outputs = ops.matmul(inputs, kernel)
        return outputs if bias is None else outputs + bias
    import torch

    kernel, bias = ops.convert_to_tensor(kernel), None if bias is None else ops.convert_to_tensor(bias)
    return torch.nn.functional.linear(inputs, kernel.t(), bias)


def random_state():
    """The state of PyTorch's random numbers, which dropout draws from there, as uint8; empty on other backends."""
    if backend_name() != "torch":
        return np.zeros(0, "uint8")
    import torch

    return torch.get_rng_state().numpy()


def set_random_state(state):
    """Goes back to what `random_state` returned."""
    if len(state):
        import torch

        torch.set_rng_state(torch.from_numpy(state))


# TensorFlow's graphs take any shape as they are, XLA compiles each new one for seconds; JAX has no graph without it.
JIT_PAYS_FOR_INFERENCE = backend_name() == "jax"


# A product with a matrix of so few tags is written out: XLA fuses it with what stands around it, a call takes longer.
FEW_TAGS = 12 if backend_name() == "jax" else 0


def _tensorflow_scan(step, state, inputs, reverse=False):
    """`ops.scan` for TensorFlow, whose own (3.15) fails on several inputs of a length not known beforehand."""
    import tensorflow as tf

    first = tree.flatten(inputs)[0]
    length = first.shape[0] if first.shape[0] is not None else tf.shape(first)[0]
    _, kind = step(state, tree.map_structure(lambda x: x[0], inputs))  # only its types; the graph drops the rest
    outputs = tree.map_structure(lambda x: tf.TensorArray(x.dtype, size=length, element_shape=x.shape), kind)

    def unstacked(x):  # reading a row of it is one operation of the graph, slicing a tensor at t is five
        return tf.TensorArray(x.dtype, size=length, element_shape=x.shape[1:]).unstack(x)

    rows = tree.map_structure(unstacked, inputs)

    def body(count, state, outputs):
        t = length - 1 - count if reverse else count
        state, output = step(state, tree.map_structure(lambda x: x.read(t), rows))
        return count + 1, state, tree.map_structure(lambda array, x: array.write(t, x), outputs, output)

    def unfinished(count, state, outputs):
        return count < length

    _, state, outputs = tf.while_loop(unfinished, body, (0, state, outputs), maximum_iterations=length)
    return state, tree.map_structure(lambda array: array.stack(), outputs)


def _torch_scan(step, state, inputs, reverse=False):
    """`ops.scan` for torch, where it is a loop in Python and each operation of Keras costs more than torch's own."""
    import torch

    rows = list(zip(*(x.unbind(0) for x in inputs), strict=True)) if isinstance(inputs, tuple) else inputs.unbind(0)
    outputs = []
    for row in reversed(rows) if reverse else rows:
        state, output = step(state, row)
        outputs.append(output)
    outputs = outputs[::-1] if reverse else outputs
    several = isinstance(outputs[0], tuple)
    return state, tuple(map(torch.stack, zip(*outputs, strict=True))) if several else torch.stack(outputs)


def _torch_loop_ops():
    import torch

    return SimpleNamespace(
        argmax=torch.argmax,  # torch takes NumPy's names of arguments, `axis` and `keepdims`, as well
        matmul=torch.matmul,
        max=torch.amax,
        sum=torch.sum,
        take=lambda x, indices, axis: torch.index_select(x, axis, indices),
        where=torch.where,
    )


# What the steps of loops call: `ops`, whose checks cost several times the operation where Python runs the loop.
loop_ops = _torch_loop_ops() if backend_name() == "torch" else ops
scan = {"tensorflow": _tensorflow_scan, "torch": _torch_scan}.get(backend_name(), ops.scan)

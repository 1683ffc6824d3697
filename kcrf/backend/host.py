"""Chooses the Keras on which the package runs, and adds the functions that Keras lacks.

The package runs on Keras 3, with the backend in the environment variable `KERAS_BACKEND` (TensorFlow, JAX or PyTorch),
or with the only one that is installed.
If `TF_KERAS=1` (as bert4keras reads it) or `TF_USE_LEGACY_KERAS=1` (as TensorFlow reads it) is set, the package runs on
Keras 2 (`tf_keras`). All other folders import `keras`, `ops` and the functions below, which hide the difference.
"""

import os
import random
import weakref
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from inspect import signature
from numbers import Integral
from types import SimpleNamespace
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

OLD_HOST = any(os.environ.get(name) in ("1", "true", "True") for name in ("TF_KERAS", "TF_USE_LEGACY_KERAS"))
if OLD_HOST:
    os.environ.update(TF_KERAS="1", TF_USE_LEGACY_KERAS="1")  # bert4keras reads one, TensorFlow the other: set both
    from kcrf.backend import tf_keras as _host
else:
    from kcrf.backend.choice import choose_backend

    choose_backend()
    from kcrf.backend import keras3 as _host  # type: ignore[no-redef]

Function = TypeVar("Function", bound=Callable[..., Any])  # a decorated function keeps its type hints
Tensor: TypeAlias = Any  # a tensor of the running backend, or what can become one: an array, a list

Functional = _host.Functional
Layer = _host.Layer
Optimizer = _host.Optimizer
Wrapper = _host.Wrapper
backend_variable = _host.backend_variable
batch_stream = _host.batch_stream
call_with_replaced_weights = _host.call_with_replaced_weights
as_keras3_optimizer = _host.as_keras3_optimizer
keras: Any = _host.keras
own_trainable_variables = _host.own_trainable_variables
called_with_mask = _host.called_with_mask
mask_ignores_inputs = _host.mask_ignores_inputs
compiled_with = _host.compiled_with
computes_shapes_only = _host.computes_shapes_only
current_stateless_scope = _host.current_stateless_scope
index_in_optimizer = _host.index_in_optimizer
is_training = _host.is_training
keep_state_dict_keys = _host.keep_state_dict_keys
layer_behind = _host.layer_behind
ops = _host.ops
saves_as_hdf5 = _host.saves_as_hdf5
path_of = _host.path_of
training_loss = _host.training_loss
tree = _host.tree


def backend_name():
    """The name of the running backend: "tensorflow", "jax" or "torch"."""
    return "tensorflow" if OLD_HOST else keras.backend.backend()


def compiled_by_xla():
    """Whether XLA compiles the traced function: on JAX always, on TensorFlow with `jit_compile=True`."""
    if backend_name() != "tensorflow":
        return backend_name() == "jax"
    import tensorflow as tf
    from tensorflow.python.ops import control_flow_util

    return control_flow_util.GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph())


def replaced_on_old_host(module: str) -> Callable[[Function], Function]:
    """Decorator: on tf_keras, calls the function of the same name in `module`, which is imported at the first call."""

    def decorate(function):
        @wraps(function)
        def call(*args, **kwargs):
            return getattr(import_module(module), function.__name__)(*args, **kwargs)

        return call if OLD_HOST else function

    return decorate


def needs_keras_3(function: Function) -> Function:
    """Decorator: on tf_keras, a call raises a `NotImplementedError`."""

    @wraps(function)
    def refuse(*args, **kwargs):
        raise NotImplementedError(f"`{function.__name__}` needs Keras 3. Received: tf_keras")

    return cast(Function, refuse) if OLD_HOST else function


def graph(function: Function) -> Function:
    """Decorator: runs `function(emissions, ...)` as a compiled graph when it is called eagerly.

    Without this decorator, JAX would compile the loops of the function at every call, and TensorFlow would run them
    step by step. Arguments are converted to tensors, except None and the integer `k`. `k` is static.
    """

    def tensor(value):
        if isinstance(value, Integral):
            return int(value)
        return None if value is None else ops.convert_to_tensor(value)

    @wraps(function)
    def call(emissions, *args, **kwargs):
        return run(tensor(emissions), *map(tensor, args), **{name: tensor(value) for name, value in kwargs.items()})

    run = _compiled(function)
    return cast(Function, call)


def _compiled(function):
    if backend_name() == "jax":
        import jax

        return jax.jit(function, static_argnames={"k"} & signature(function).parameters.keys())
    if backend_name() == "tensorflow":
        import tensorflow as tf

        # With `reduce_retracing` every size that changes becomes None, but the number of tags must stay static.
        # Functions may differ under XLA, so graphs traced there are not used elsewhere.
        traced = defaultdict(lambda: tf.function(function, autograph=False, reduce_retracing=True))
        return lambda x, *args, **kwargs: traced[x.shape[-1], compiled_by_xla()](x, *args, **kwargs)
    return _without_autocast(function)


def _without_autocast(function):
    """The function outside of `torch.autocast`, which would compute products of probabilities in 16 bits."""
    import torch

    @wraps(function)
    def call(x, *args, **kwargs):
        if not torch.is_autocast_enabled(x.device.type):
            return function(x, *args, **kwargs)
        with torch.autocast(x.device.type, enabled=False):
            return function(x, *args, **kwargs)

    return call


def is_tracing():
    """Whether Keras or TensorFlow is tracing the caller, so that tensors have no values."""
    if current_stateless_scope() is not None:
        return True
    if backend_name() != "tensorflow":
        return False
    import tensorflow as tf

    return not tf.executing_eagerly()


def is_traced(variable):
    """Whether the current value of a variable is one that JAX traces, as in `jax.grad`."""
    if backend_name() != "jax":
        return False
    import jax

    scope = current_stateless_scope()
    return scope is not None and isinstance(scope.get_current_value(variable), jax.core.Tracer)


def weakref_to(tensor):
    """A weak reference to a tensor; None while torch compiles, which knows no such references."""
    if backend_name() == "torch":
        import torch

        if torch.compiler.is_compiling():
            return None
    return weakref.ref(tensor)


def exports_onnx():
    """Whether torch is exporting an ONNX file, for which it unrolls each loop to the length of an example."""
    if backend_name() != "torch":
        return False
    import torch

    return torch.onnx.is_in_onnx_export() or torch.compiler.is_exporting()


def raise_if(condition, message, *values):
    """Raises a ValueError if a condition on tensors holds. In compiled functions this depends on the backend.

    TensorFlow's graphs raise an `InvalidArgumentError`, and JAX a `JaxRuntimeError`; both end with the message. With
    XLA on TensorFlow, the condition is not checked.

    Args:
        condition: A scalar bool tensor.
        message: A format string.
        *values: Scalar tensors that are formatted into the message.
    """

    def refuse(condition, *values):
        if condition:
            raise ValueError(message.format(*(f"{float(x):g}" for x in values)))

    if backend_name() == "jax":
        import jax

        if isinstance(condition, jax.core.Tracer):
            return jax.lax.cond(condition, lambda: jax.debug.callback(refuse, condition, *values), lambda: None)
    if backend_name() == "tensorflow":
        import tensorflow as tf

        if compiled_by_xla():
            return None
        if not tf.executing_eagerly():
            return tf.debugging.Assert(~condition, [tf.strings.format(message, values)])
    if backend_name() == "torch" and current_stateless_scope() is not None:
        return None  # Keras infers shapes by calling the function on arbitrary values
    return refuse(bool(condition), *values)


def tensor_from_numpy(array):
    """A tensor that shares the memory of a NumPy array if the array is aligned. Do not modify the array afterwards."""
    if backend_name() == "torch":
        import torch

        return torch.from_numpy(array)
    if backend_name() == "jax":
        import jax

        return jax.device_put(array)
    import tensorflow as tf

    if array.ndim == 2 and array.flags.f_contiguous and not array.flags.c_contiguous:
        return tf.transpose(tensor_from_numpy(array.T))  # ten times as fast as a copy by NumPy
    if (
        array.ctypes.data % 64 or not array.flags.c_contiguous
    ):  # TensorFlow accepts unaligned arrays here and crashes later
        return tf.convert_to_tensor(array)
    return tf.experimental.dlpack.from_dlpack(array.__dlpack__())


def linear(inputs, kernel, bias):
    """Computes `inputs @ kernel + bias`; `bias` may be None. On torch this is one operation without a copy."""
    if backend_name() != "torch":
        outputs = ops.matmul(inputs, kernel)
        return outputs if bias is None else outputs + bias
    import torch

    kernel, bias = ops.convert_to_tensor(kernel), None if bias is None else ops.convert_to_tensor(bias)
    return torch.nn.functional.linear(inputs, kernel.t(), bias)


def fused_attention_learns_fast(query):
    """Whether the gradient of the backend's fused attention is faster than that of matrix products and a softmax.

    It is not on PyTorch in half precision on a CPU, where it takes 2 to 9 times as long (torch 2.13).
    """
    return backend_name() != "torch" or query.dtype.itemsize >= 4 or query.device.type != "cpu"


def set_random_seed(seed):
    """Seeds the random generators of Python, NumPy and PyTorch, which Keras' initializers and dropout use.

    `keras.utils.set_random_seed` also seeds TensorFlow. With another backend, it imports TensorFlow, which takes
    seconds; with TensorFlow, it frees all kernels, even those in use.
    """
    if OLD_HOST:
        return keras.utils.set_random_seed(seed)
    random.seed(seed)
    np.random.seed(seed)
    if backend_name() == "torch":
        import torch

        torch.manual_seed(seed)


def random_state():
    """The state of PyTorch's random generator, which dropout uses, a uint8 array; empty on other backends."""
    if backend_name() != "torch":
        return np.zeros(0, "uint8")
    import torch

    return torch.get_rng_state().numpy()


def set_random_state(state):
    """Restores a state that `random_state` returned."""
    if len(state):
        import torch

        torch.set_rng_state(torch.from_numpy(state))


# XLA takes seconds to compile each new shape. TensorFlow's graphs run any shape without XLA; JAX always uses XLA.
JIT_PAYS_FOR_INFERENCE = backend_name() == "jax"

# Whether training takes seconds to compile for each new shape of a batch.
COMPILES_SHAPES = backend_name() != "torch"


# Up to this number of tags, matrix products are written as sums: XLA fuses sums, which is faster than a call.
FEW_TAGS = 12 if backend_name() == "jax" else 0


def _by_reversing(forward):
    """An `ops.scan` from one that reads forward only."""

    def scan(step, state, inputs, reverse=False):
        """`ops.scan` that reverses arrays to read backward, which jax2onnx converts; tf2onnx gets it wrong."""
        if not reverse:
            return forward(step, state, inputs)
        state, outputs = forward(step, state, tree.map_structure(lambda x: ops.flip(x, 0), inputs))
        return state, tree.map_structure(lambda x: ops.flip(x, 0), outputs)

    return scan


def _tensorflow_scan(step, state, inputs):
    """`ops.scan` for TensorFlow, forward. The one in Keras 3.15 fails for several inputs of unknown length."""
    import tensorflow as tf

    first = tree.flatten(inputs)[0]
    length = first.shape[0] if first.shape[0] is not None else tf.shape(first)[0]
    _, kind = step(state, tree.map_structure(lambda x: x[0], inputs))  # for its dtypes and shapes; it is pruned
    outputs = tree.map_structure(lambda x: tf.TensorArray(x.dtype, size=length, element_shape=x.shape), kind)

    def unstacked(x):  # one operation per row; slicing a tensor takes five
        return tf.TensorArray(x.dtype, size=length, element_shape=x.shape[1:]).unstack(x)

    rows = tree.map_structure(unstacked, inputs)

    def body(count, state, outputs):
        state, output = step(state, tree.map_structure(lambda x: x.read(count), rows))
        return count + 1, state, tree.map_structure(lambda array, x: array.write(count, x), outputs, output)

    def unfinished(count, state, outputs):
        return count < length

    _, state, outputs = tf.while_loop(unfinished, body, (0, state, outputs), maximum_iterations=length)
    return state, tree.map_structure(lambda array: array.stack(), outputs)


def _torch_scan(step, state, inputs, reverse=False):
    """`ops.scan` for torch: a Python loop without the overhead of Keras' operations."""
    import torch

    arrays = inputs if isinstance(inputs, tuple) else (inputs,)
    steps = list(zip(*(x.unbind(0) for x in arrays), strict=True)) if arrays is inputs else inputs.unbind(0)
    taken = steps[:1] if arrays[0].is_meta else steps  # `fit` asks for shapes first: one step has those of all
    outputs = []
    for step_inputs in reversed(taken) if reverse else taken:
        state, output = step(state, step_inputs)
        outputs.append(output)
    outputs = (outputs[::-1] if reverse else outputs) * (len(steps) // len(taken))
    several = isinstance(outputs[0], tuple)
    return state, tuple(map(torch.stack, zip(*outputs, strict=True))) if several else torch.stack(outputs)


def _torch_loop_ops():
    import torch

    return SimpleNamespace(
        argmax=torch.argmax,  # torch also accepts NumPy's argument names `axis` and `keepdims`
        logsumexp=torch.logsumexp,
        matmul=torch.matmul,
        max=torch.amax,
        min=torch.amin,
        sum=torch.sum,
        take=lambda x, indices, axis: torch.index_select(x, axis, indices),
        where=torch.where,
    )


class _LoopOps:
    """`ops` with another `argmax`: Keras 3.15 distinguishes 0.0 and -0.0 with an operation that ONNX lacks."""

    def __getattr__(self, name):
        return getattr(ops, name)

    def argmax(self, x, axis):
        if backend_name() == "jax":
            import jax

            return jax.numpy.argmax(x, axis).astype("int32")
        import tensorflow as tf

        return tf.argmax(x, axis, output_type="int32")


# `ops` for the steps of loops. On torch without Keras' checks, which take longer than the operations.
loop_ops = {"torch": _torch_loop_ops, "tensorflow": _LoopOps, "jax": _LoopOps}.get(backend_name(), lambda: ops)()
_forward_scan = _tensorflow_scan if backend_name() == "tensorflow" else ops.scan
scan = _torch_scan if backend_name() == "torch" else _by_reversing(_forward_scan)

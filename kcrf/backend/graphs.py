"""Loops and compiled functions of tensors that Keras lacks, or that are faster here than in Keras."""

import sys
from collections import defaultdict
from collections.abc import Callable
from functools import partial, wraps
from inspect import signature
from numbers import Integral
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import numpy as np

from kcrf.backend.host import TensorLike, backend_name, current_stateless_scope, keras, ops, tree

if backend_name() == "torch":
    import torch
elif backend_name() == "jax":
    import jax
elif backend_name() == "tensorflow":
    import tensorflow as tf
    from tensorflow.python.ops import control_flow_util

Function = TypeVar("Function", bound=Callable[..., Any])  # a decorated function keeps its type hints

# Up to this number of tags, matrix products are written as sums: XLA fuses sums, which is faster than a call.
FEW_TAGS = 12 if backend_name() == "jax" else 0
_FEW_STEPS = 8  # of a loop that becomes a sequence of operations under JAX


def compiled_by_xla() -> Any:
    """Whether XLA compiles the traced function: on JAX always, on TensorFlow with `jit_compile=True`."""
    if backend_name() != "tensorflow":
        return backend_name() == "jax"
    return control_flow_util.GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph())


def loop_target() -> str:
    """The runner of a loop: "operations" started one by one, or a program of XLA for a "cpu" or an "accelerator"."""
    if not compiled_by_xla():
        return "operations"
    if backend_name() == "jax":
        return "cpu" if jax.default_backend() == "cpu" else "accelerator"
    return "accelerator" if tf.config.list_logical_devices("GPU") else "cpu"


def exports_onnx() -> Any:
    """Whether torch is exporting an ONNX file, for which it unrolls each loop to the length of an example."""
    return backend_name() == "torch" and (torch.onnx.is_in_onnx_export() or torch.compiler.is_exporting())


def graph(function: Function) -> Function:
    """Decorator: runs `function(tensor, ...)` as a compiled graph when it is called eagerly. `k` is static."""

    def tensor(value: Any, beside: TensorLike) -> Any:
        if value is None or isinstance(value, Integral):
            return value if value is None else int(value)
        # Keras takes as long to convert a tensor of torch to itself as to start a kernel on CUDA.
        is_converted = backend_name() == "torch" and type(value) is type(beside) and value.device == beside.device
        return value if is_converted else ops.convert_to_tensor(value)

    @wraps(function)
    def call(x: TensorLike, *args: Any, **kwargs: Any) -> Any:
        return run(x, *(tensor(other, x) for other in args), **{name: tensor(y, x) for name, y in kwargs.items()})

    run = _compiled(function)
    return cast(Function, call)


def _compiled(function: Any) -> Any:
    if backend_name() == "jax":
        return jax.jit(function, static_argnames={"k"} & signature(function).parameters.keys())
    if backend_name() == "tensorflow":
        # With `reduce_retracing` every size that changes becomes None, but the number of tags must stay static.
        # Functions may differ under XLA, so graphs traced there are not used elsewhere.
        traced = defaultdict(lambda: tf.function(function, autograph=False, reduce_retracing=True))
        return lambda x, *args, **kwargs: traced[x.shape[-1], compiled_by_xla()](x, *args, **kwargs)

    @wraps(function)
    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        if not torch.is_autocast_enabled(x.device.type):
            return function(x, *args, **kwargs)
        with torch.autocast(x.device.type, enabled=False):  # it would compute products of probabilities in 16 bits
            return function(x, *args, **kwargs)

    return call


def uncompiled(function: Function) -> Function:
    """Decorator: `torch.compile` runs the function as it is. It would unroll its loops, and compile for minutes."""
    return cast(Function, torch.compiler.disable(function)) if backend_name() == "torch" else function


_UNKNOWN = 2  # the value of a condition that has not arrived on the host
_WAITING: list[tuple[TensorLike, Callable[[], None]]] = []


def check_if(condition: TensorLike, check: Callable[[], None]) -> None:
    """Calls `check`, which calls `raise_if`, if a condition on a tensor holds. Else the check costs nothing.

    The host does not wait for CUDA: `check` is called later, by another call of this function. XLA on TensorFlow and
    `torch.compile` cannot raise, so nothing is checked there.
    """
    if backend_name() == "jax" and isinstance(condition, jax.core.Tracer):
        return jax.lax.cond(condition, check, lambda: None)
    if backend_name() == "tensorflow":
        if compiled_by_xla():
            return None
        if not tf.executing_eagerly():
            return tf.cond(condition, lambda: [check(), True][1], lambda: False)  # type: ignore[func-returns-value]
    if backend_name() == "torch":
        if condition.is_meta or torch.compiler.is_compiling():
            return None
        if condition.is_cuda:
            return _check_later(condition, check)
    return check() if condition else None


def _check_later(condition: TensorLike, check: Callable[[], None]) -> None:
    """Copies the condition to the host without waiting, and checks the earlier ones that have arrived."""
    flag = torch.full((), _UNKNOWN, dtype=torch.int8, pin_memory=condition.is_cuda)
    flag.copy_(condition, non_blocking=True)
    _WAITING.append((flag, check))
    while _WAITING and _WAITING[0][0].item() != _UNKNOWN:
        arrived, refuse = _WAITING.pop(0)
        if arrived.item():
            refuse()


def on_host(function: Callable[[np.ndarray], None], tensor: TensorLike) -> Any:
    """Calls a function with the values of a tensor, in a compiled step, too, but for XLA on TensorFlow."""
    if backend_name() == "jax":
        return jax.debug.callback(lambda x: function(np.asarray(x)), tensor)
    if backend_name() == "tensorflow":
        return tf.numpy_function(function, [tensor], [])
    return function(ops.convert_to_numpy(tensor))


def raise_if(condition: Any, message: str, *values: Any) -> Any:
    """Raises a ValueError if a condition on tensors holds; `values` are formatted into the message.

    Compiled functions raise their backend's error with the same message; XLA on TensorFlow checks nothing. Steps of
    several devices under JAX print it: if one of them raises, the others wait for it forever.
    """

    def refuse(condition: Any, *values: Any) -> None:
        if condition:
            error = ValueError(message.format(*(f"{float(x):g}" for x in values)))
            if not are_several:
                raise error
            print(error, file=sys.stderr)

    distribution = keras.distribution.distribution() if backend_name() == "jax" else None  # of this thread
    are_several = distribution is not None and distribution.device_mesh.devices.size > 1

    if backend_name() == "jax" and isinstance(condition, jax.core.Tracer):
        return jax.lax.cond(condition, lambda: jax.debug.callback(refuse, condition, *values), lambda: None)
    if backend_name() == "tensorflow":
        if compiled_by_xla():
            return None
        if not tf.executing_eagerly():
            return tf.debugging.Assert(~condition, [tf.strings.format(message, values)])
    if backend_name() == "torch" and current_stateless_scope() is not None:
        return None  # Keras infers shapes by calling the function on arbitrary values
    return refuse(bool(condition), *values)


def _by_reversing(forward: Any) -> Any:
    def scan(step: Any, state: Any, inputs: Any, reverse: bool = False) -> Any:
        if not reverse:
            return forward(step, state, inputs)
        state, outputs = forward(step, state, tree.map_structure(lambda x: ops.flip(x, 0), inputs))
        return state, tree.map_structure(lambda x: ops.flip(x, 0), outputs)

    return scan


def _unrolled_scan(step: Any, state: Any, inputs: Any) -> Any:
    """`ops.scan` for JAX, with several steps in an iteration: a GPU launches fewer kernels, and a CPU is not slower."""
    length = tree.flatten(inputs)[0].shape[0]  # a symbol if JAX exports a model
    unroll = (length if length <= _FEW_STEPS else 4) if isinstance(length, int) else 1
    return ops.scan(step, state, inputs, unroll=unroll)


def _tensorflow_scan(step: Any, state: Any, inputs: Any) -> tuple[Any, Any]:
    """`ops.scan` for TensorFlow, forward. The one in Keras 3.15 fails for several inputs of unknown length."""
    first = tree.flatten(inputs)[0]
    length = first.shape[0] if first.shape[0] is not None else tf.shape(first)[0]
    _, kind = step(state, tree.map_structure(lambda x: x[0], inputs))  # for its dtypes and shapes; it is pruned
    outputs = tree.map_structure(lambda x: tf.TensorArray(x.dtype, size=length, element_shape=x.shape), kind)

    def unstacked(x: Any) -> Any:  # one operation per row; slicing a tensor takes five
        return tf.TensorArray(x.dtype, size=length, element_shape=x.shape[1:]).unstack(x)

    rows = tree.map_structure(unstacked, inputs)

    def body(count: int, state: Any, outputs: Any) -> tuple[Any, Any, Any]:
        state, output = step(state, tree.map_structure(lambda x: x.read(count), rows))
        return count + 1, state, tree.map_structure(lambda array, x: array.write(count, x), outputs, output)

    def unfinished(count: int, state: Any, outputs: Any) -> Any:
        return count < length

    _, state, outputs = tf.while_loop(unfinished, body, (0, state, outputs), maximum_iterations=length)
    return state, tree.map_structure(lambda array: array.stack(), outputs)


def _torch_scan(step: Any, state: Any, inputs: Any, reverse: bool = False) -> tuple[Any, Any]:
    """`ops.scan` for torch: a Python loop without the overhead of Keras' operations."""
    arrays = inputs if isinstance(inputs, tuple) else (inputs,)
    steps = list(zip(*(x.unbind(0) for x in arrays), strict=True)) if arrays is inputs else inputs.unbind(0)
    taken = steps[:1] if arrays[0].is_meta else steps  # `fit` asks for shapes first: all steps have the same
    outputs = []
    for step_inputs in reversed(taken) if reverse else taken:
        state, output = step(state, step_inputs)
        outputs.append(output)
    outputs = (outputs[::-1] if reverse else outputs) * (len(steps) // len(taken))
    several = isinstance(outputs[0], tuple)
    return state, tuple(map(torch.stack, zip(*outputs, strict=True))) if several else torch.stack(outputs)


def _loop_ops() -> Any:
    """`ops` for loops and steps. On torch without Keras' checks, which take long, and copies of numbers to a GPU."""
    names = ("argmax", "clip", "logsumexp", "matmul", "max", "min", "sum", "take", "where")
    found = {name: getattr(ops, name) for name in names}
    if backend_name() == "torch":
        found |= {name: getattr(torch, name) for name in ("argmax", "clip", "logsumexp", "matmul", "sum", "where")}
        found |= {"max": torch.amax, "min": torch.amin}  # torch knows NumPy's argument names `axis` and `keepdims`, too
        found["take"] = lambda x, indices, axis: torch.index_select(x, axis, indices)
    if backend_name() == "jax":
        found["argmax"] = lambda x, axis: jax.numpy.argmax(x, axis).astype("int32")  # Keras' one distinguishes 0.0
        found["matmul"] = partial(jax.numpy.matmul, precision="highest")  # else a GPU multiplies numbers of 11 bits
    if backend_name() == "tensorflow":
        found["argmax"] = partial(tf.argmax, output_type="int32")  # and -0.0, with an operation that ONNX lacks
        if tf.config.list_physical_devices("GPU"):  # which multiplies float32 in 11 bits, too
            found["matmul"] = lambda x, y: tf.cast(tf.cast(x, "float64") @ tf.cast(y, "float64"), "float32")
    return SimpleNamespace(**found)


loop_ops = _loop_ops()
_forward_scan = _tensorflow_scan if backend_name() == "tensorflow" else ops.scan
scan = _torch_scan if backend_name() == "torch" else _by_reversing(_forward_scan)
short_scan = _by_reversing(_unrolled_scan) if backend_name() == "jax" else scan

"""Chooses Keras 3, or Keras 2 if `TF_KERAS=1` or `TF_USE_LEGACY_KERAS=1`, and adds functions that Keras lacks."""

import os
import random
import weakref
from collections.abc import Callable
from functools import lru_cache, wraps
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from kcrf.backend.choice import choose_backend

OLD_HOST = any(os.environ.get(name) in ("1", "true", "True") for name in ("TF_KERAS", "TF_USE_LEGACY_KERAS"))
if OLD_HOST:
    os.environ.update(TF_KERAS="1", TF_USE_LEGACY_KERAS="1")  # bert4keras reads one, TensorFlow the other: set both
else:
    choose_backend()
# The support of tf_keras stands with bert4keras', a floor above, and is imported where a script asks for it.
_host: Any = import_module("kcrf.bert4keras.tf_keras" if OLD_HOST else "kcrf.backend.keras3")

Function = TypeVar("Function", bound=Callable[..., Any])  # a decorated function keeps its type hints

_AMPERE = 8  # the compute capability from which GPUs compute in bfloat16

keras: Any = _host.keras
ops: Any = _host.ops
tree: Any = _host.tree
if TYPE_CHECKING:
    from kcrf.backend.hints import Layer, Model, Tensor, TensorLike

    class DirectCalls:  # as `Any`, it would give its subclasses any name
        """A mixin of layers."""
else:
    Layer = _host.Layer
    DirectCalls = getattr(_host, "DirectCalls", type("DirectCalls", (), {}))  # not `object`, which must come last
    Model = Tensor = TensorLike = Any
Optimizer: Any = _host.Optimizer
Wrapper: Any = _host.Wrapper
batch_stream = _host.batch_stream
kernel_of: Any = getattr(_host, "kernel_of", attrgetter("kernel"))
current_stateless_scope = _host.current_stateless_scope
saves_as_hdf5 = _host.saves_as_hdf5


def backend_name() -> Any:
    """The name of the running backend: "tensorflow", "jax" or "torch"."""
    return "tensorflow" if OLD_HOST else keras.backend.backend()


if backend_name() == "torch":
    import torch
elif backend_name() == "jax":
    import jax
elif backend_name() == "tensorflow":
    import tensorflow as tf


def replaced_on_old_host(module: str) -> Callable[[Function], Function]:
    """Decorator: on tf_keras, calls the function of the same name in `module`, which is imported at the first call."""

    def decorate(function: Any) -> Any:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return getattr(import_module(module), function.__name__)(*args, **kwargs)

        return call if OLD_HOST else function

    return decorate


def path_of(variable: Any) -> str:
    """The path of a Keras variable; the name of any other variable."""
    return getattr(variable, "path", None) or variable.name.removesuffix(":0")


def own_trainable_variables(layer: Any) -> list[Any]:
    """The variables created by the layer itself with `trainable=True`, whether or not the layer is frozen now."""
    return layer._trainable_weights if OLD_HOST else layer._trainable_variables


def layer_behind(tensor: Any) -> Any:
    """The layer whose output a symbolic tensor is, also inside nested models; None for any other tensor."""
    history: Any = getattr(tensor, "_keras_history", None)
    layer = None if history is None else history[0]
    if isinstance(layer, keras.Model) and len(getattr(layer, "outputs", None) or ()) > history.tensor_index:
        return layer_behind(layer.outputs[history.tensor_index])
    return layer


def input_names(tensor: Any) -> set[str]:
    """The names of the inputs that a symbolic tensor depends on, and of the inputs of models in between."""
    names: set[str] = set()
    pending, seen = [] if OLD_HOST else [tensor], set()
    while pending:
        history = getattr(pending.pop(), "_keras_history", None)
        if history is None or (id(history[0]), history.node_index) in seen:
            continue
        operation = history[0]
        seen.add((id(operation), history.node_index))
        if isinstance(operation, keras.layers.InputLayer):
            names.add(operation.name)
        if isinstance(operation, keras.Model):
            names.update(x.name for x in operation.inputs)
        pending += operation._inbound_nodes[history.node_index].input_tensors
    return names


def mask_ignores_inputs(mask: Any) -> bool:
    """Whether a symbolic mask is True everywhere, because Concatenate got inputs with and without a mask.

    Keras 3 computes it as any(concatenate([mask, ones_like(input without a mask)])).
    """
    pending = [(mask, ("", ""))]  # tensors, each with the names of the last two operations after it
    while pending:
        tensor, path = pending.pop()
        history = getattr(tensor, "_keras_history", None)
        if history is None or isinstance(history[0], keras.layers.Layer):
            continue
        name = type(history[0]).__name__
        if name == "OnesLike" and path == ("Any", "Concatenate"):
            return True
        path = (path[1], name)
        pending.extend((x, path) for x in history[0]._inbound_nodes[history.node_index].input_tensors)
    return False


def is_tracing() -> bool:
    """Whether Keras or TensorFlow is tracing the caller, so that tensors have no values."""
    return current_stateless_scope() is not None or backend_name() == "tensorflow" and not tf.executing_eagerly()


def is_traced(variable: Any) -> bool:
    """Whether the current value of a variable is one that JAX traces, as in `jax.grad`."""
    if backend_name() != "jax":
        return False
    scope = current_stateless_scope()
    return scope is not None and isinstance(scope.get_current_value(variable), jax.core.Tracer)


def weakref_to(tensor: Any) -> Any:
    """A weak reference to a tensor; None while torch compiles, which knows no such references."""
    return None if backend_name() == "torch" and torch.compiler.is_compiling() else weakref.ref(tensor)


def tensor_from_numpy(array: Any) -> Any:
    """A tensor that shares the memory of a NumPy array if the array is aligned. Do not modify the array afterwards."""
    if backend_name() == "torch":
        return torch.from_numpy(array)
    if backend_name() == "jax":
        return jax.device_put(array)
    if array.ndim == 2 and array.flags.f_contiguous and not array.flags.c_contiguous:
        return tf.transpose(tensor_from_numpy(array.T))  # ten times as fast as a copy by NumPy
    # TensorFlow accepts unaligned arrays here and crashes later.
    if array.ctypes.data % 64 or not array.flags.c_contiguous:
        return tf.convert_to_tensor(array)
    return tf.experimental.dlpack.from_dlpack(array.__dlpack__())


def constant_beside(tensor: Any, array: Any) -> Any:
    """A NumPy constant as a tensor, on torch on the device of another. A number, too, is copied to CUDA: only once."""
    if backend_name() == "torch" and not torch.compiler.is_compiling():
        return _constant_on(array.tobytes(), array.dtype.name, array.shape, tensor.device)
    return ops.convert_to_tensor(array)


@lru_cache(64)
def _constant_on(content: bytes, dtype: str, shape: tuple[int, ...], device: Any) -> Any:
    with torch.inference_mode(False):
        return torch.tensor(np.frombuffer(content, dtype).reshape(shape), device=device)


def linear(inputs: Any, kernel: Any, bias: Any) -> Any:
    """Computes `inputs @ kernel + bias`; `bias` may be None. On torch this is one operation without a copy."""
    if backend_name() != "torch":
        outputs = ops.matmul(inputs, kernel)
        return outputs if bias is None else outputs + bias
    kernel, bias = (getattr(x, "value", x) for x in (kernel, bias))  # of variables
    return torch.nn.functional.linear(inputs, kernel.t(), bias)


def fuses_attention(query: Any, training: bool, dropout: float) -> bool:
    """Whether `fused_attention` can train with dropout, and is the faster way: not on torch in 16 bits on a CPU."""
    if backend_name() != "torch":
        return not dropout
    return not training or query.dtype.itemsize >= 4 or query.device.type != "cpu"


def fused_attention(query: Any, key: Any, value: Any, heads: int, mask: Any, masked: float, dropout: float) -> Any:
    """Attention in one operation, from and to `(batch, time, heads * size)`; the mask `(batch, time)` may be None."""
    if backend_name() == "torch":
        query, key, value = (x.unflatten(-1, (heads, -1)).transpose(1, 2) for x in (query, key, value))
        bias = None if mask is None else _host.bias_of_mask(mask, query.dtype, masked)
        context = torch.nn.functional.scaled_dot_product_attention(query, key, value, bias, dropout)
        return context.transpose(1, 2).flatten(2)
    batch, time, width = ops.shape(query)
    query, key, value = (ops.reshape(x, (batch, time, heads, width // heads)) for x in (query, key, value))
    flash = None
    if mask is not None:
        mask = mask[:, None, None, :]  # (batch, heads, query, key)
        if backend_name() == "jax":  # cuDNN needs all queries, and has no gradient for an odd number of positions
            mask, flash = ops.broadcast_to(mask, (batch, 1, time, time)), None if time % 2 == 0 else False
    context = ops.dot_product_attention(query, key, value, mask=mask, flash_attention=flash)
    return ops.reshape(context, (batch, time, width))


def fused_norm(inputs: Any, gamma: Any, beta: Any, epsilon: float) -> Any:
    """Layer normalization of the last axis without Keras' conversions, on torch for one dtype; else None."""
    if backend_name() != "torch" or gamma is None or beta is None or inputs.dtype != gamma.value.dtype:
        return None
    return torch.nn.functional.layer_norm(inputs, inputs.shape[-1:], gamma.value, beta.value, epsilon)


def best_precision() -> str:
    """The fastest arithmetic that needs no scaling of losses: "bfloat16" on a GPU that computes in it, or "float32"."""
    if backend_name() == "torch":
        has_it = torch.cuda.is_available() and torch.cuda.is_bf16_supported(including_emulation=False)
    elif backend_name() == "jax":
        device = jax.devices()[0]
        version = str(getattr(device, "compute_capability", "")).partition(".")[0]  # "gfx90a" for a card of AMD
        has_it = device.platform == "gpu" and version.isdigit() and int(version) >= _AMPERE
    else:
        details = map(tf.config.experimental.get_device_details, tf.config.list_physical_devices("GPU"))
        has_it = any(device.get("compute_capability", (0,)) >= (_AMPERE,) for device in details)
    return "bfloat16" if has_it else "float32"


def set_random_seed(seed: Any) -> Any:
    """Seeds Python, NumPy and PyTorch. Keras' own function also imports TensorFlow, or frees kernels in use."""
    if OLD_HOST:
        return keras.utils.set_random_seed(seed)
    random.seed(seed)
    np.random.seed(seed)
    if backend_name() == "torch":
        torch.manual_seed(seed)


def random_state() -> Any:
    """The states of PyTorch's random generators, CUDA's too, which dropout uses, as uint8; empty on other backends."""
    if backend_name() != "torch":
        return np.zeros(0, "uint8")
    cuda = [torch.cuda.get_rng_state()] if torch.cuda.is_available() else []
    return torch.cat([torch.get_rng_state(), *cuda]).numpy()


def set_random_state(state: Any) -> None:
    """Restores a state that `random_state` returned."""
    if len(state):
        state, cuda = torch.from_numpy(state).tensor_split([len(torch.get_rng_state())])
        torch.set_rng_state(state)
        if len(cuda) and torch.cuda.is_available():
            torch.cuda.set_rng_state(cuda)


# XLA takes seconds to compile each new shape. TensorFlow's graphs run any shape without XLA; JAX always uses XLA.
JIT_PAYS_FOR_INFERENCE = backend_name() == "jax"
# Whether training takes seconds to compile for each new shape of a batch.
COMPILES_SHAPES = backend_name() != "torch"

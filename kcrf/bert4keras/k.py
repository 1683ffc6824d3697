"""Keras 2's `keras.backend` for scripts of bert4keras: `from kcrf.backend import K`.

Each function has the arguments and defaults of Keras 2 and works on tensors of Keras 3, on every backend. Functions
with the same name and arguments in `keras.ops` come from there. Functions that need a graph of TensorFlow 1
(`function`, `gradients`, `rnn`, ...) are not supported.
"""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from kcrf.backend import backend_name, current_stateless_scope, keras, ops

_SAME = (
    "abs all any binary_crossentropy categorical_crossentropy clip cos dot elu equal exp eye greater "
    "greater_equal less less_equal log logsumexp max maximum mean min minimum not_equal one_hot ones ones_like "
    "relu reshape round shape sigmoid sign sin softmax softplus softsign sparse_categorical_crossentropy "
    "sqrt square squeeze stack std stop_gradient sum tanh tile var zeros zeros_like"
)
_RENAMED = {"permute_dimensions": "transpose", "pow": "power", "repeat_elements": "repeat", "reverse": "flip"}
_FUNCTIONS = {
    **{name: getattr(ops, name) for name in _SAME.split()},
    **{name: getattr(ops, new_name) for name, new_name in _RENAMED.items()},
    **{name: getattr(keras.config, name) for name in ("epsilon", "floatx", "set_epsilon", "set_floatx")},
    **dict.fromkeys(("eval", "get_value"), ops.convert_to_numpy),
    **dict.fromkeys(("set_value", "update"), lambda x, value: x.assign(value)),
    "backend": backend_name,
    "clear_session": keras.backend.clear_session,
    "cast": lambda x, dtype: ops.cast(ops.convert_to_tensor(x), dtype),
    "update_add": lambda x, increment: x.assign_add(increment),
    "update_sub": lambda x, decrement: x.assign_sub(decrement),
    "batch_get_value": lambda tensors: list(map(ops.convert_to_numpy, tensors)),
    "int_shape": lambda x: tuple(x.shape),
    "ndim": lambda x: len(x.shape),
    "dtype": lambda x: keras.backend.standardize_dtype(x.dtype),
    "transpose": lambda x: ops.transpose(x, tuple(range(len(x.shape)))[::-1]),
    "argmax": lambda x, axis=-1: ops.argmax(x, axis=axis),
    "argmin": lambda x, axis=-1: ops.argmin(x, axis=axis),
    "concatenate": lambda tensors, axis=-1: ops.concatenate(tensors, axis=axis),
    "expand_dims": lambda x, axis=-1: ops.expand_dims(x, axis),
    "cumsum": lambda x, axis=0: ops.cumsum(x, axis=axis),
    "cumprod": lambda x, axis=0: ops.cumprod(x, axis=axis),
    "arange": lambda start, stop=None, step=1, dtype="int32": ops.arange(start, stop, step, dtype=dtype),
    "flatten": lambda x: ops.reshape(x, (-1,)),
    "gather": lambda reference, indices: ops.take(reference, indices, axis=0),
    "where": lambda condition, x, y: ops.where(ops.cast(condition, "bool"), x, y),
    "l2_normalize": lambda x, axis=None: x / ops.sqrt(ops.maximum(ops.sum(x * x, axis=axis, keepdims=True), 1e-12)),
    "variable": lambda value, dtype=None, name=None: keras.Variable(
        np.asarray(value), dtype=dtype or keras.config.floatx(), name=name
    ),
    "in_test_phase": lambda x, alt, training=None: in_train_phase(alt, x, training),
    "random_normal": lambda shape, mean=0.0, stddev=1.0, dtype=None, seed=None: keras.random.normal(
        shape, mean, stddev, dtype=dtype, seed=_source(seed)
    ),
    "dropout": lambda x, level, noise_shape=None, seed=None: keras.random.dropout(
        x, level, noise_shape, seed=_source(seed)
    ),
}
_INSTEAD = {  # functions for graphs of TensorFlow 1, which Keras 3 does not build
    "gradients": "the functions of kcrf.bert4keras.adversarial, which train with gradients of the embeddings; in place "
    "of a layer of gradients, `from kcrf.bert4keras.layers import GradientTimesInput`; to rank tokens, "
    "`integrated_gradients` of kcrf.bert4keras.attribution; elsewhere tf.GradientTape, jax.grad or torch.autograd.grad",
    "function": "`keras.Model(inputs, outputs).predict`",
    "rnn": "`keras.layers.RNN`",
    "batch_dot": "`ops.matmul` or `ops.einsum`",
    "placeholder": "`keras.Input`",
    **dict.fromkeys(("get_session", "set_session"), "nothing: Keras 3 has no sessions, so remove the line"),
    "name_scope": "`keras.name_scope`; in place of the class SetLearningRate of kexue.fm/archives/6418, "
    "`from kcrf.bert4keras.layers import SetLearningRate`, which has its arguments",
}


def __getattr__(name: str) -> Any:
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    if name in _INSTEAD:
        raise AttributeError(f"K has no {name!r}, a function of Keras 2. Instead: {_INSTEAD[name]}.")
    raise AttributeError(
        f"K has no {name!r}: it offers the functions of Keras 2 that can be written with Keras 3. See the functions of "
        "`kcrf.backend.ops`."
    )


def set_learning_phase(value: Any) -> None:
    """Warns, and does nothing else: Keras 3 passes `training` to each call."""
    warnings.warn(
        f"K.set_learning_phase({value!r}) has no effect: in Keras 3 `fit` trains, `predict` does not, and `call` takes "
        "`training=...`",
        stacklevel=2,
    )


def learning_phase() -> Any:
    """Whether the current layer is called for training: True, False, or None outside of layers."""
    from kcrf.backend.keras3 import is_training  # not at the top: tf_keras imports this module, and not Keras 3

    return is_training()


def in_train_phase(x: Any, alt: Any, training: bool | None = None) -> Any:
    """Returns `x` in training and `alt` otherwise. Both may be functions without arguments."""
    chosen = x if (learning_phase() if training is None else training) else alt
    return chosen() if callable(chosen) else chosen


_generator = ContextVar("generator", default=None)


@contextmanager
def having(variable: ContextVar[Any], value: Any) -> Iterator[Any]:
    """A context in which a variable has a value."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def drawing_from(generator: Any) -> Any:
    """A context in which the random functions below use a `keras.random.SeedGenerator` if they get no seed."""
    return having(_generator, generator)


def _source(seed: Any) -> Any:
    """The `seed` for a random function of Keras 3."""
    from kcrf.backend.keras3 import computes_shapes_only

    if seed is not None or computes_shapes_only():
        return seed or 0
    if _generator.get() is None and backend_name() == "jax" and current_stateless_scope() is not None:
        raise ValueError(
            "On JAX, K.random_uniform, K.random_normal, K.random_binomial and K.dropout need `seed` in a layer of a "
            "model: a keras.random.SeedGenerator that the layer keeps. Or make the model by `from "
            "kcrf.bert4keras.models import Keras2Model as Model`, which has one for all its layers. Received: seed=None"
        )
    return _generator.get()


def random_uniform(shape: Any, minval: float = 0.0, maxval: float = 1.0, dtype: Any = None, seed: Any = None) -> Any:
    return keras.random.uniform(shape, minval, maxval, dtype=dtype, seed=_source(seed))


def random_binomial(shape: Any, p: float = 0.0, dtype: Any = None, seed: Any = None) -> Any:
    """1 with probability `p`, else 0."""
    return ops.cast(random_uniform(shape, seed=seed) < p, dtype or keras.config.floatx())


def prod(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """The product of entries. For a tuple, such as a part of `K.shape(x)`, a number that `K.reshape` accepts."""
    return math.prod(x) if isinstance(x, (tuple, list)) else ops.prod(x, axis=axis, keepdims=keepdims)


def batch_set_value(tuples: Any) -> None:
    for x, value in tuples:
        x.assign(value)


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Any:
    value = np.asarray(value, dtype=dtype or keras.config.floatx())
    return ops.convert_to_tensor(value if shape is None else np.broadcast_to(value, shape))

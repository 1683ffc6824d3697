"""Keras 2 (`tf_keras`) under the names of Keras 3, for a CRF and its optimizer inside bert4keras.

`kcrf.backend` imports this module instead of `kcrf.backend.keras3` if `TF_KERAS=1`. `keras` is tf_keras. `ops` comes
from the Keras 3 that TensorFlow installs: plain functions of TensorFlow tensors. The optimizers are for one device.
"""

import importlib
import os
import sys
import warnings
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import tensorflow as tf

try:
    import tf_keras
except ImportError:
    raise ImportError(
        "TF_KERAS=1 or TF_USE_LEGACY_KERAS=1 asks for Keras 2: pip install tf_keras, of the same version as "
        "tensorflow; or, to run on Keras 3, unset both and delete lines such as os.environ['TF_KERAS'] = '1'"
    ) from None


def _import_keras_3() -> tuple[Any, Any]:
    """`ops` and `tree` of Keras 3. Afterwards `import keras` gives tf_keras, as after `import bert4keras`."""
    os.environ["KERAS_BACKEND"] = "tensorflow"
    aside = {}
    if "keras.src" not in sys.modules:
        names = [name for name in sys.modules if name.partition(".")[0] == "keras"]
        aside = {name: sys.modules.pop(name) for name in names}  # tf_keras, if bert4keras has put it there
        importlib.import_module("keras")
    elif _imported_before(sys.modules.get("keras")):
        warnings.warn(
            "keras was imported before kcrf, and is Keras 3: its layers do not fit models of tf_keras ('str' object "
            "has no attribute 'base_dtype'). Import kcrf before `from keras...`, which then gives tf_keras",
            stacklevel=2,
        )
    for name in [name for name in sys.modules if name.partition(".")[0] == "keras"]:
        if not name.startswith("keras.src"):
            del sys.modules[name]
    sys.modules.update({"keras": tf.keras, **aside})
    return importlib.import_module("keras.src.ops"), importlib.import_module("keras.src.tree")


def _imported_before(module: Any) -> bool:
    """Whether this module is Keras 3 and has been imported completely."""
    spec = getattr(module, "__spec__", None)
    return spec is not None and spec.name == "keras" and not getattr(spec, "_initializing", False)


ops, tree = _import_keras_3()


class _Names:
    """A module of tf_keras with additional names. Its error for a missing name says that the name needs Keras 3."""

    def __init__(self, module: Any, **names: Any) -> None:
        self.__dict__.update(names, _module=module)

    def __getattr__(self, name: str) -> Any:
        try:
            value = getattr(self._module, name)
            return _Names(value) if isinstance(value, ModuleType) else value
        except AttributeError:
            raise AttributeError(
                f"{self._module.__name__} has no {name!r}, which needs Keras 3: unset TF_KERAS and TF_USE_LEGACY_KERAS"
            ) from None


def name_in_bert4keras_backend(name: str) -> Any:
    """A name of bert4keras' own backend module, which has all those that scripts import from there."""
    if name == "K" and "bert4keras.backend" not in sys.modules:
        return tf.keras.backend  # bert4keras adds its functions to this module
    return getattr(importlib.import_module("bert4keras.backend"), name)


class _Layer:
    """The arguments that layers of Keras 3 have and layers of tf_keras lack."""

    def add_weight(self, *args: Any, autocast: bool = True, **kwargs: Any) -> Any:
        return super().add_weight(*args, experimental_autocast=autocast, **kwargs)  # type: ignore[misc]

    def build_from_config(self, config: dict[str, Any]) -> None:
        """Builds a loaded layer in the same name scope as a layer that is built by a call.

        Without the scope, the names of variables lack the name of the layer ("trans" instead of "CRF/trans"), and the
        patterns of optimizers do not match.
        """
        with tf.name_scope(self.name):  # type: ignore[attr-defined]
            super().build_from_config(config)  # type: ignore[misc]


class Layer(_Layer, tf_keras.layers.Layer):
    """`keras.layers.Layer` for layers that run on Keras 2 and 3."""


class Wrapper(_Layer, tf_keras.layers.Wrapper):
    """`keras.layers.Wrapper` for layers that run on Keras 2 and 3."""


class Optimizer(tf_keras.optimizers.Optimizer):
    """`keras.optimizers.Optimizer`, as far as `kcrf.optimizers.Adam` needs it."""

    def __init__(self, learning_rate: Any = 0.001, name: str | None = None, **kwargs: Any) -> None:
        kwargs.pop("is_legacy_optimizer", None)  # tf_keras writes it into every config
        if kwargs.get("use_ema") or kwargs.get("gradient_accumulation_steps") or tf.distribute.has_strategy():
            raise ValueError(
                "Moving averages, gradient accumulation and several devices need Keras 3: unset TF_KERAS and "
                f"TF_USE_LEGACY_KERAS. Received: {kwargs}, strategy={tf.distribute.get_strategy()}"
            )
        super().__init__(name or type(self).__name__, **kwargs)
        self._learning_rate = self._build_learning_rate(learning_rate)
        self.built = False

    def build(self, variables: Any) -> None:
        super().build(variables)
        self._trainable_variables = self._no_dependency(list(variables))
        self.built = True

    def add_optimizer_variables(self, variables: Any, names: Iterable[str]) -> list[Any]:
        return [[self.add_variable_from_reference(v, name=name) for v in variables] for name in names]

    def add_variable_from_reference(self, model_variable: Any, name: str, initializer: Any = None) -> Any:
        value = initializer(model_variable.shape) if initializer else None
        return super().add_variable_from_reference(model_variable, name, initial_value=value)

    def apply_gradients(self, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        """As in tf_keras, with dense gradients: the slices of an embedding's gradient have another norm."""
        dense = [(tf.convert_to_tensor(g) if hasattr(g, "dense_shape") else g, v) for g, v in grads_and_vars]
        return super().apply_gradients(dense, *args, **kwargs)

    def _internal_apply_gradients(self, grads_and_vars: Any) -> Any:
        rate = tf.convert_to_tensor(self._get_current_learning_rate())
        for gradient, variable in grads_and_vars:
            self.update_step(gradient, variable, rate)
        return self.iterations.assign_add(1)

    def _get_current_learning_rate(self) -> Any:
        is_schedule = isinstance(self._learning_rate, tf_keras.optimizers.schedules.LearningRateSchedule)
        return self._learning_rate(self.iterations) if is_schedule else self._learning_rate

    def _get_variable_index(self, variable: Any) -> int:
        return self._index_dict[self._var_key(variable)]

    def assign(self, variable: Any, value: Any) -> None:
        variable.assign(value)

    def assign_sub(self, variable: Any, value: Any) -> None:
        variable.assign_sub(value)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "learning_rate": self._serialize_hyperparameter(self._learning_rate)}


batch_stream = iter  # tf_keras' `fit` takes any generator


def current_stateless_scope() -> None:
    """None: Keras 2 has no stateless scopes."""


def saves_as_hdf5() -> bool:
    """Whether Keras is saving a model in an HDF5 file that it could not load: never here."""
    return False


keras = _Names(
    tf_keras,
    ops=ops,
    Variable=tf.Variable,
    name_scope=tf.name_scope,
    config=_Names(tf_keras.backend, set_dtype_policy=tf_keras.mixed_precision.set_global_policy),
)

"""Keras 2 (`tf_keras`) under the names of Keras 3. Imported by `host` only.

`keras` is tf_keras. `ops` comes from the Keras 3 that TensorFlow installs: plain functions of TensorFlow tensors.
"""

import importlib
import os
import sys
import warnings
from inspect import Parameter, signature
from types import ModuleType

import tensorflow as tf

try:
    import tf_keras
except ImportError:
    raise ImportError(
        "TF_KERAS=1 or TF_USE_LEGACY_KERAS=1 asks for Keras 2: pip install tf_keras, of the same version as "
        "tensorflow; or, to run on Keras 3, unset both and delete lines such as os.environ['TF_KERAS'] = '1'"
    ) from None

from kcrf.backend.tf_keras_optimizers import Optimizer, as_keras3_optimizer, index_in_optimizer, path_of


def _import_keras_3():
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


def _imported_before(module):
    """Whether this module is Keras 3 and has been imported completely."""
    spec = getattr(module, "__spec__", None)
    return spec is not None and spec.name == "keras" and not getattr(spec, "_initializing", False)


ops, tree = _import_keras_3()


class _Names:
    """A module of tf_keras with additional names. Its error for a missing name says that the name needs Keras 3."""

    def __init__(self, module, **names):
        self.__dict__.update(names, _module=module)

    def __getattr__(self, name):
        try:
            value = getattr(self._module, name)
            return _Names(value) if isinstance(value, ModuleType) else value
        except AttributeError:
            raise AttributeError(
                f"{self._module.__name__} has no {name!r}, which needs Keras 3: unset TF_KERAS and TF_USE_LEGACY_KERAS"
            ) from None


K = tf.keras.backend  # bert4keras adds its functions to this module


class _Layer:
    """The arguments that layers of Keras 3 have and layers of tf_keras lack."""

    def add_weight(self, *args, autocast=True, **kwargs):
        return super().add_weight(*args, experimental_autocast=autocast, **kwargs)

    def build_from_config(self, config):
        """Builds a loaded layer in the same name scope as a layer that is built by a call.

        Without the scope, the names of variables lack the name of the layer ("trans" instead of "CRF/trans"), and the
        patterns of optimizers do not match.
        """
        with tf.name_scope(self.name):
            super().build_from_config(config)


Functional = tf_keras.Model


class Layer(_Layer, tf_keras.layers.Layer):
    """`keras.layers.Layer` for layers that run on Keras 2 and 3."""


class Wrapper(_Layer, tf_keras.layers.Wrapper):
    """`keras.layers.Wrapper` for layers that run on Keras 2 and 3."""


def batch_stream(batches):
    """An infinite stream of batches that `fit` accepts as data: any generator."""
    return batches


def current_stateless_scope():
    """None: Keras 2 has no stateless scopes."""
    return None


def keep_state_dict_keys(layer):
    """Does nothing: only layers on torch have a `state_dict`."""


def saves_as_hdf5():
    """Whether Keras is saving a model in an HDF5 file that it could not load: never here."""
    return False


def is_training():
    """None: under tf_keras, scripts use the `K` of tf_keras."""
    return None


def computes_shapes_only():
    """False: under tf_keras, scripts use the `K` of tf_keras."""
    return False


def layer_behind(tensor):
    """The layer whose output a symbolic tensor is, also inside nested models; None for any other tensor."""
    history = getattr(tensor, "_keras_history", None)
    layer = None if history is None else history.layer
    if isinstance(layer, tf_keras.Model) and len(getattr(layer, "outputs", None) or ()) > history.tensor_index:
        return layer_behind(layer.outputs[history.tensor_index])
    return layer


def mask_ignores_inputs(mask):
    """False: Concatenate of tf_keras masks each position that one of its inputs masks."""
    return False


def called_with_mask(layer):
    """Whether a layer was called on symbolic tensors with a mask."""
    nodes = layer._inbound_nodes
    masks = [getattr(x, "_keras_mask", None) for node in nodes for x in tf.nest.flatten(node.keras_inputs)]
    return any(mask is not None for mask in [*masks, *(node.call_kwargs.get("mask") for node in nodes)])


def compiled_with(model):
    """The `loss` and the list of `metrics` that were passed to `compile`."""
    compiled = getattr(model, "compiled_metrics", None)
    metrics = [] if compiled is None else [compiled._user_metrics, compiled._user_weighted_metrics]
    return getattr(model, "loss", None), metrics


def own_trainable_variables(layer):
    """The variables created by the layer itself with `trainable=True`, whether or not the layer is frozen now."""
    return layer._trainable_weights


def backend_variable(variable):
    """The variable itself, a variable of TensorFlow."""
    return variable


def training_loss(model, x, y, y_pred, sample_weight):
    """The loss of a batch in training."""
    return model.compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight)


def call_with_replaced_weights(layer, variables, change, inputs, **kwargs):
    """Calls a layer with `change(value)` instead of the values of some of its variables.

    Returns:
        The outputs, and an empty list: tf_keras collects all losses.
    """
    replaced_ids = {id(v) for v in variables}
    layers = list(layer._flatten_layers())
    owners = [(owner, name, v) for owner in layers for name, v in vars(owner).items() if id(v) in replaced_ids]
    lost = [v.name for v in variables if id(v) not in {id(owned) for _, _, owned in owners}]
    if lost:
        raise ValueError(f"Under tf_keras every weight must be an attribute of its layer. Received: {lost}, in lists")
    accepted = signature(layer.call).parameters.values()
    if all(parameter.kind != Parameter.VAR_KEYWORD for parameter in accepted):
        kwargs = {name: value for name, value in kwargs.items() if name in {p.name for p in accepted}}
    changed = {id(v): change(tf.convert_to_tensor(v)) for v in variables}
    try:
        for owner, name, v in owners:
            casts = hasattr(v, "true_dtype")  # as Keras does under mixed precision
            vars(owner)[name] = tf.cast(changed[id(v)], owner.compute_dtype) if casts else changed[id(v)]
        return layer(inputs, **kwargs), []
    finally:
        for owner, name, v in owners:
            vars(owner)[name] = v


keras = _Names(
    tf_keras,
    ops=ops,
    Variable=tf.Variable,
    name_scope=tf.name_scope,
    config=_Names(tf_keras.backend, set_dtype_policy=tf_keras.mixed_precision.set_global_policy),
    optimizers=_Names(tf_keras.optimizers, LossScaleOptimizer=tf_keras.mixed_precision.LossScaleOptimizer),
)

"""Keras 2 (`tf_keras`) under the names of Keras 3. Imported by `host` only.

`keras` is tf_keras. `ops` comes from the Keras 3 that TensorFlow installs: plain functions of TensorFlow tensors.
"""

import importlib
import os
import sys
import warnings
from functools import cache
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

__all__ = [
    "K",
    "Functional",
    "Layer",
    "Optimizer",
    "Wrapper",
    "as_keras3_optimizer",
    "backend_variable",
    "batch_stream",
    "call_with_replaced_weights",
    "called_with_mask",
    "compiled_with",
    "computes_shapes_only",
    "current_stateless_scope",
    "index_in_optimizer",
    "is_training",
    "keep_state_dict_keys",
    "keras",
    "layer_behind",
    "mask_ignores_inputs",
    "ops",
    "own_trainable_variables",
    "path_of",
    "saves_as_hdf5",
    "training_loss",
    "tree",
]


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
    """Whether this is Keras 3 and its import is over: kcrf is imported while Keras is, to register its classes."""
    spec = getattr(module, "__spec__", None)
    return spec is not None and spec.name == "keras" and not getattr(spec, "_initializing", False)


ops, tree = _import_keras_3()


class _Names:
    """A module of tf_keras with additional names, and an error that says which names need Keras 3."""

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
    """Arguments of Keras 3's layers that those of tf_keras lack."""

    def add_weight(self, *args, autocast=True, **kwargs):
        return super().add_weight(*args, experimental_autocast=autocast, **kwargs)

    def build_from_config(self, config):
        """Builds a loaded layer in the name scope in which a layer is built when it is called.

        Without the scope its variables lack the name of the layer: "trans" and not "CRF/trans", which the patterns of
        optimizers look for.
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
    """None: scripts have the `K` of tf_keras here, which knows it."""
    return None


def computes_shapes_only():
    """False, for the same reason."""
    return False


def layer_behind(tensor):
    """The layer that a symbolic tensor is the output of, inside nested models too; None for any other tensor."""
    history = getattr(tensor, "_keras_history", None)
    layer = None if history is None else history.layer
    if isinstance(layer, tf_keras.Model) and len(getattr(layer, "outputs", None) or ()) > history.tensor_index:
        return layer_behind(layer.outputs[history.tensor_index])
    return layer


def mask_ignores_inputs(mask):
    """False: the Concatenate of tf_keras masks the positions that one of its inputs masks."""
    return False


def called_with_mask(layer):
    """Whether a layer was called on symbolic tensors with a mask."""
    nodes = layer._inbound_nodes
    masks = [getattr(x, "_keras_mask", None) for node in nodes for x in tf.nest.flatten(node.keras_inputs)]
    return any(mask is not None for mask in [*masks, *(node.call_kwargs.get("mask") for node in nodes)])


def compiled_with(model):
    """The loss and the list of metrics that a model was compiled with, as they were given to `compile`."""
    compiled = getattr(model, "compiled_metrics", None)
    metrics = [] if compiled is None else [compiled._user_metrics, compiled._user_weighted_metrics]
    return getattr(model, "loss", None), metrics


def index_in_optimizer(optimizer, variable):
    """The index of a variable in the lists of an optimizer; None if the optimizer does not train it, or not yet."""
    return optimizer._index_dict.get(optimizer._var_key(variable)) if hasattr(optimizer, "_index_dict") else None


def path_of(variable):
    """The name of a variable without TensorFlow's ":0", which is the path of Keras 3."""
    return variable.name.removesuffix(":0")


def own_trainable_variables(layer):
    """The variables created by the layer itself with `trainable=True`, whether or not the layer is frozen now."""
    return layer._trainable_weights


def backend_variable(variable):
    """The variable itself, which is one of TensorFlow."""
    return variable


def training_loss(model, x, y, y_pred, sample_weight):
    """The loss of a batch in training."""
    return model.compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight)


def call_with_replaced_weights(layer, variables, change, inputs, **kwargs):
    """Calls a layer with `change(value)` in place of the values of some of its variables.

    Returns:
        The outputs, and an empty list: tf_keras collects all losses.
    """
    wanted = {id(v) for v in variables}
    layers = list(layer._flatten_layers())
    owners = [(owner, name, v) for owner in layers for name, v in vars(owner).items() if id(v) in wanted]
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


class _Protocol:
    """The interface of Keras 3's optimizers on top of those of tf_keras.

    `update_step` receives the learning rate, gradients can be accumulated, and the methods that subclasses override
    have the names of Keras 3.
    """

    gradient_accumulation_steps = None
    _current_rate = None  # the learning rate during a step
    _accumulated = ()

    def __init__(self, *args, gradient_accumulation_steps=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.gradient_accumulation_steps = gradient_accumulation_steps

    def _process_kwargs(self, kwargs):
        kwargs.pop("is_legacy_optimizer", None)  # tf_keras writes it into every config
        if kwargs:
            raise ValueError(f"Argument(s) not recognized: {kwargs}")

    @property
    def built(self):
        """Whether the optimizer has its variables."""
        return getattr(self, "_built", False)

    @property
    def iterations(self):
        """The number of updates so far; batches that only accumulate gradients do not count."""
        steps = self.gradient_accumulation_steps
        return self._iterations // steps if steps else self._iterations

    @iterations.setter
    def iterations(self, variable):
        tf_keras.optimizers.Optimizer.iterations.fset(self, variable)

    @property
    def learning_rate(self):
        """The learning rate of the current step, or of the next one."""
        return self._get_current_learning_rate() if self._current_rate is None else self._current_rate

    @learning_rate.setter
    def learning_rate(self, value):
        tf_keras.optimizers.Optimizer.learning_rate.fset(self, value)

    def build(self, variables):
        """Creates the optimizer's variables."""
        if self.built:
            return
        super().build(variables)
        self._trainable_variables = self._no_dependency(list(variables))
        if self.gradient_accumulation_steps:
            self._accumulated = self.add_optimizer_variables(variables, "gradient_accumulator")
        self._built = True

    def add_variable_from_reference(self, model_variable, variable_name=None, shape=None, initial_value=None, **kwargs):
        """As in tf_keras, with `name` and `initializer` of Keras 3 as alternatives."""
        name, initializer = kwargs.get("name", variable_name), kwargs.get("initializer")
        value = initializer(model_variable.shape) if initializer else initial_value
        return super().add_variable_from_reference(model_variable, name, shape, value)

    def add_optimizer_variables(self, variables, name):
        """A list of new variables, one for each of `variables`; a tuple of such lists for several names."""
        if not isinstance(name, str):
            return tuple(self.add_optimizer_variables(variables, one) for one in name)
        return [self.add_variable_from_reference(v, name=name) for v in variables]

    def apply_gradients(self, grads_and_vars, name=None, skip_gradients_aggregation=False, **kwargs):
        """Called by tf_keras: sums the gradients of all devices and applies them."""
        if not skip_gradients_aggregation and kwargs.get("experimental_aggregate_gradients", True):
            grads_and_vars = self.aggregate_gradients(grads_and_vars)
        grads, variables = zip(*grads_and_vars, strict=True)
        self.apply(list(grads), list(variables))
        return self._iterations

    def apply(self, grads, trainable_variables=None):
        """Applies gradients, or adds them to those that are being accumulated."""
        variables = self._trainable_variables if trainable_variables is None else trainable_variables
        with tf.name_scope(self.name), tf.init_scope():
            self.build(variables)
        pairs = [(g, v) for g, v in zip(grads, variables, strict=True) if g is not None]
        if len(pairs) < len(grads):
            absent = [path_of(v) for g, v in zip(grads, variables, strict=True) if g is None]
            if not pairs:
                raise ValueError(f"No gradients provided for any variable. Received: variables={absent}")
            warnings.warn(f"Gradients do not exist for variables {absent}.", stacklevel=2)
        self._accumulate(*zip(*pairs, strict=True))
        self._iterations.assign_add(1)

    def _accumulate(self, grads, variables):
        steps = self.gradient_accumulation_steps
        if not steps:
            return self._step(grads, variables)
        sums = [self._accumulated[self._get_variable_index(v)] for v in variables]

        def step():
            self._step([(total + g) / steps for total, g in zip(sums, grads, strict=True)], variables)
            for total in sums:
                total.assign(tf.zeros_like(total))
            return True

        def wait():
            for total, g in zip(sums, grads, strict=True):
                total.assign_add(g)
            return False

        tf.cond((self._iterations + 1) % steps == 0, step, wait)

    def _step(self, grads, variables):
        grads, rate = self._clip_gradients(grads), tf.convert_to_tensor(self._get_current_learning_rate())
        if self.weight_decay:
            self._apply_weight_decay(variables)
        self._backend_update_step(grads, variables, rate)
        if self.use_ema:
            self._update_model_variables_moving_average(variables)
            if self.ema_overwrite_frequency:
                self._overwrite_with_averages_if_due(variables)
        for variable in variables:
            if variable.constraint is not None:
                variable.assign(variable.constraint(variable))

    def _update_model_variables_moving_average(self, var_list):
        momentum = tf.where(
            self.iterations == 0, 0.0, self.ema_momentum
        )  # starts from the first weights, as in Keras 3
        for variable in var_list:
            average = self._model_variables_moving_average[self._get_variable_index(variable)]
            average.assign(momentum * average + (1 - momentum) * variable)

    def _overwrite_with_averages_if_due(self, variables):
        def overwrite():
            self._overwrite_model_variables_with_average_value(variables)
            return True

        tf.cond((self.iterations + 1) % self.ema_overwrite_frequency == 0, overwrite, lambda: False)

    def _get_current_learning_rate(self):
        if isinstance(self._learning_rate, tf_keras.optimizers.schedules.LearningRateSchedule):
            return self._learning_rate(self._iterations)
        return self._learning_rate

    def _backend_update_step(self, grads, variables, learning_rate):
        def update(strategy, pairs):
            for gradient, variable in pairs:
                strategy.extended.update(
                    variable, lambda v, g: self.update_step(g, v, learning_rate), args=(gradient,), group=False
                )

        pairs = list(zip(grads, variables, strict=True))
        tf.__internal__.distribute.interim.maybe_merge_call(update, self._distribution_strategy, pairs)

    def update_step(self, gradient, variable, learning_rate):
        """The update of a tf_keras optimizer, which reads `self.learning_rate`."""
        self._current_rate = learning_rate
        try:
            super().update_step(gradient, variable)
        finally:
            self._current_rate = None

    def _get_variable_index(self, variable):
        return self._index_dict[self._var_key(variable)]

    def assign(self, variable, value):
        """Assigns a value to a variable."""
        variable.assign(value)

    def assign_sub(self, variable, value):
        """Subtracts from a variable."""
        variable.assign_sub(value)

    def get_config(self):
        """The config of the optimizer, with `gradient_accumulation_steps` if there are any."""
        steps = self.gradient_accumulation_steps
        return {**super().get_config(), **({"gradient_accumulation_steps": steps} if steps else {})}


class _BareOptimizer(tf_keras.optimizers.Optimizer):
    """The base class of tf_keras with the arguments of that of Keras 3."""

    def __init__(self, learning_rate=0.001, weight_decay=None, name=None, **kwargs):
        super().__init__(name or type(self).__name__, weight_decay, **kwargs)
        self._learning_rate = self._build_learning_rate(learning_rate)

    def get_config(self):
        return {**super().get_config(), "learning_rate": self._serialize_hyperparameter(self._learning_rate)}


class Optimizer(_Protocol, _BareOptimizer):
    """Base class of optimizers, used like that of Keras 3."""


@cache
def as_keras3_optimizer(optimizer_class):
    """The optimizer class with the interface of Keras 3."""
    if issubclass(optimizer_class, _Protocol):
        return optimizer_class
    return type(optimizer_class.__name__, (_Protocol, optimizer_class), {})


keras = _Names(
    tf_keras,
    ops=ops,
    Variable=tf.Variable,
    name_scope=tf.name_scope,
    config=_Names(tf_keras.backend, set_dtype_policy=tf_keras.mixed_precision.set_global_policy),
    optimizers=_Names(tf_keras.optimizers, LossScaleOptimizer=tf_keras.mixed_precision.LossScaleOptimizer),
)

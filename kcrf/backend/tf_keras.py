"""The old host, Keras 2 as `tf_keras`, under the names that Keras 3 gives things. `host` alone imports this.

`keras` is tf_keras, `ops` those of the Keras 3 that TensorFlow brings along: plain functions of TensorFlow's tensors.
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
        "TF_KERAS=1 or TF_USE_LEGACY_KERAS=1 asks for Keras 2: pip install tf_keras, of the same version as tensorflow"
    ) from None

__all__ = ["K", "Layer", "Optimizer", "Wrapper", "call_with", "extensible", "keras", "made_trainable", "open_scope"]

__all__ += ["batch_stream", "ops", "path_of", "tree"]


def _import_keras_3():
    """`ops` and `tree` of Keras 3. bert4keras calls tf_keras "keras" and must find that name free, or as it left it."""
    os.environ["KERAS_BACKEND"] = "tensorflow"
    if "keras.src" not in sys.modules:
        names = [name for name in sys.modules if name.partition(".")[0] == "keras"]
        aside = {name: sys.modules.pop(name) for name in names}
        importlib.import_module("keras")
        for name in [name for name in sys.modules if name.partition(".")[0] == "keras"]:
            if not name.startswith("keras.src"):
                del sys.modules[name]
        sys.modules.update(aside)
    return importlib.import_module("keras.src.ops"), importlib.import_module("keras.src.tree")


ops, tree = _import_keras_3()


class _Names:
    """A module of tf_keras with a few names more, which tells who asks for one that only Keras 3 has."""

    def __init__(self, module, **names):
        self.__dict__.update(names, _module=module)

    def __getattr__(self, name):
        try:
            found = getattr(self._module, name)
            return _Names(found) if isinstance(found, ModuleType) else found
        except AttributeError:
            raise AttributeError(
                f"{self._module.__name__} has no {name!r}, which needs Keras 3: unset TF_KERAS and TF_USE_LEGACY_KERAS"
            ) from None


K = tf.keras.backend  # the very module that bert4keras adds its functions to


class _Layer:
    """What layers of Keras 3 understand and those of tf_keras do not."""

    def add_weight(self, *args, autocast=True, **kwargs):
        return super().add_weight(*args, experimental_autocast=autocast, **kwargs)


class Layer(_Layer, tf_keras.layers.Layer):
    """`keras.layers.Layer` for layers that are written for both hosts."""


class Wrapper(_Layer, tf_keras.layers.Wrapper):
    """`keras.layers.Wrapper` for layers that are written for both hosts."""


def batch_stream(batches):
    """Batches without end as `fit` takes them: any generator."""
    return batches


def open_scope():
    """None: Keras 2 has no stateless scopes."""
    return None


def path_of(variable):
    """The name of a variable without TensorFlow's ":0": layer and weight, as the path in Keras 3."""
    return variable.name.removesuffix(":0")


def made_trainable(layer):
    """The variables of a layer itself that are made to be trained, also while they are frozen."""
    return layer._trainable_weights


def call_with(layer, variables, change, inputs, **kwargs):
    """Calls a layer with `change(value)` in place of the values of some of its variables.

    Returns:
        The outputs, and the losses that Keras does not collect by itself: none.
    """
    wanted = {id(v) for v in variables}
    owners = [(own, name, v) for own in layer._flatten_layers() for name, v in vars(own).items() if id(v) in wanted]
    lost = [v.name for v in variables if id(v) not in {id(found) for _, _, found in owners}]
    if lost:
        raise ValueError(f"Under tf_keras every weight must be an attribute of its layer. Received: {lost}, in lists")
    accepted = signature(layer.call).parameters.values()
    if all(parameter.kind != Parameter.VAR_KEYWORD for parameter in accepted):
        kwargs = {name: value for name, value in kwargs.items() if name in {p.name for p in accepted}}
    changed = {id(v): change(tf.convert_to_tensor(v)) for v in variables}
    try:
        for own, name, v in owners:
            casts = hasattr(v, "true_dtype")  # as Keras does under a policy of mixed precision
            vars(own)[name] = tf.cast(changed[id(v)], own.compute_dtype) if casts else changed[id(v)]
        return layer(inputs, **kwargs), []
    finally:
        for own, name, v in owners:
            vars(own)[name] = v


class _Protocol:
    """Keras 3's protocol of optimizers on top of those of tf_keras: a step is told its learning rate, gradients may
    accumulate over batches, and whoever overrides a part finds it where Keras 3 has it."""

    gradient_accumulation_steps = None
    _in_force = None  # the learning rate of the step that is being made
    _accumulated = ()

    def __init__(self, *args, gradient_accumulation_steps=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.gradient_accumulation_steps = gradient_accumulation_steps

    def _process_kwargs(self, kwargs):
        kwargs.pop("is_legacy_optimizer", None)  # tf_keras writes it into every configuration
        if kwargs:
            raise ValueError(f"Argument(s) not recognized: {kwargs}")

    @property
    def built(self):
        """Whether the optimizer has its variables."""
        return getattr(self, "_built", False)

    @property
    def iterations(self):
        """The number of steps so far; batches that only accumulate are no steps."""
        steps = self.gradient_accumulation_steps
        return self._iterations // steps if steps else self._iterations

    @iterations.setter
    def iterations(self, variable):
        tf_keras.optimizers.Optimizer.iterations.fset(self, variable)

    @property
    def learning_rate(self):
        """The learning rate: within a step the one of the step, between two that of the next one."""
        return self._get_current_learning_rate() if self._in_force is None else self._in_force

    @learning_rate.setter
    def learning_rate(self, value):
        tf_keras.optimizers.Optimizer.learning_rate.fset(self, value)

    def build(self, variables):
        """Makes the optimizer's variables."""
        if self.built:
            return
        super().build(variables)
        self._trainable_variables = self._no_dependency(list(variables))
        if self.gradient_accumulation_steps:
            self._accumulated = self.add_optimizer_variables(variables, "gradient_accumulator")
        self._built = True

    def add_variable_from_reference(self, model_variable, variable_name=None, shape=None, initial_value=None, **kwargs):
        """Takes the arguments of tf_keras, and `name` and `initializer` of Keras 3."""
        name, initializer = kwargs.get("name", variable_name), kwargs.get("initializer")
        value = initializer(model_variable.shape) if initializer else initial_value
        return super().add_variable_from_reference(model_variable, name, shape, value)

    def add_optimizer_variables(self, variables, name):
        """A list of new variables, one for each of `variables`; for several names a tuple of such lists."""
        if not isinstance(name, str):
            return tuple(self.add_optimizer_variables(variables, one) for one in name)
        return [self.add_variable_from_reference(v, name=name) for v in variables]

    def apply_gradients(self, grads_and_vars, name=None, skip_gradients_aggregation=False, **kwargs):
        """What tf_keras calls: adds up the gradients of all devices and applies them."""
        if not skip_gradients_aggregation and kwargs.get("experimental_aggregate_gradients", True):
            grads_and_vars = self.aggregate_gradients(grads_and_vars)
        grads, variables = zip(*grads_and_vars, strict=True)
        self.apply(list(grads), list(variables))
        return self._iterations

    def apply(self, grads, trainable_variables=None):
        """One step, or, while gradients accumulate, perhaps none yet."""
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
                self._overwrite_sometimes(variables)
        for variable in variables:
            if variable.constraint is not None:
                variable.assign(variable.constraint(variable))

    def _update_model_variables_moving_average(self, var_list):
        momentum = tf.where(self.iterations == 0, 0.0, self.ema_momentum)  # starts at the first weights, as on Keras 3
        for variable in var_list:
            average = self._model_variables_moving_average[self._get_variable_index(variable)]
            average.assign(momentum * average + (1 - momentum) * variable)

    def _overwrite_sometimes(self, variables):
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
        """The step of an optimizer of tf_keras, which looks its learning rate up."""
        self._in_force = learning_rate
        try:
            super().update_step(gradient, variable)
        finally:
            self._in_force = None

    def _get_variable_index(self, variable):
        return self._index_dict[self._var_key(variable)]

    def assign(self, variable, value):
        """Gives a variable a value."""
        variable.assign(value)

    def assign_sub(self, variable, value):
        """Subtracts from a variable."""
        variable.assign_sub(value)

    def get_config(self):
        """The configuration of the optimizer and, where gradients accumulate, over how many batches."""
        steps = self.gradient_accumulation_steps
        return {**super().get_config(), **({"gradient_accumulation_steps": steps} if steps else {})}


class _BareOptimizer(tf_keras.optimizers.Optimizer):
    """tf_keras' base class with the arguments of Keras 3's."""

    def __init__(self, learning_rate=0.001, weight_decay=None, name=None, **kwargs):
        super().__init__(name or type(self).__name__, weight_decay, **kwargs)
        self._learning_rate = self._build_learning_rate(learning_rate)

    def get_config(self):
        return {**super().get_config(), "learning_rate": self._serialize_hyperparameter(self._learning_rate)}


class Optimizer(_Protocol, _BareOptimizer):
    """Base class of optimizers, used as that of Keras 3."""


@cache
def extensible(optimizer_class):
    """A class of optimizers that `kcrf.optimizers.extensions` can extend: one of tf_keras with Keras 3's protocol."""
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

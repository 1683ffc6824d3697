"""Optimizers of Keras 2 (`tf_keras`) with the interface of Keras 3's optimizers. Imported by `tf_keras` only."""

import warnings
from functools import cache

import tensorflow as tf
import tf_keras


def path_of(variable):
    """The name of a variable without TensorFlow's ":0", which is the path of Keras 3."""
    return variable.name.removesuffix(":0")


class _Keras3Interface:
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
        """Applies gradients, or adds them to the accumulated gradients."""
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


class Optimizer(_Keras3Interface, _BareOptimizer):
    """The base class of optimizers, with the interface of Keras 3."""


@cache
def as_keras3_optimizer(optimizer_class):
    """The optimizer class with the interface of Keras 3."""
    if issubclass(optimizer_class, _Keras3Interface):
        return optimizer_class
    return type(optimizer_class.__name__, (_Keras3Interface, optimizer_class), {})


def index_in_optimizer(optimizer, variable):
    """The index of a variable in the lists of an optimizer. None if the optimizer is not built or does not train it."""
    return optimizer._index_dict.get(optimizer._var_key(variable)) if hasattr(optimizer, "_index_dict") else None

"""bert4keras' `extend_with_*` functions: each returns an optimizer class that adds one feature to another class.

    AdamWG = extend_with_gradient_accumulation(extend_with_weight_decay(Adam))
    optimizer = AdamWG(learning_rate=5e-5, weight_decay_rate=0.01, grad_accum_steps=4)

Names, arguments and the order of effects follow bojone/bert4keras `optimizers.py`: the first extension acts first.
"""

import re
from functools import cache
from typing import Any

from kcrf.backend import keras, ops, path_of
from kcrf.optimizers.schedules import PiecewiseLinear
from kcrf.optimizers.variables import (
    USUAL_EXCLUSIONS,
    ExcludesFromDecay,
    PathAware,
    as_patterns,
    copy_of,
    matches_any,
    multipliers,
)

register = keras.saving.register_keras_serializable(package="kcrf", name="ExtendedOptimizer")


@register
class Extension(PathAware):
    """Base of all extensions, and the registered name of every extended class.

    These classes exist in the running script alone: a saved optimizer stores their recipe.
    """

    recipe: Any = None

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "recipe": [list(line) for line in self.recipe]}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        config = dict(config)
        recipe = config.pop("recipe", None)
        if cls is not Extension:
            return super().from_config(config, custom_objects)
        base = recipe[0][1]
        optimizer_class = keras.saving.get_registered_object(base) or getattr(keras.optimizers, base, None)
        if optimizer_class is None:
            raise ValueError(
                "The class that was extended must be registered (keras.saving.register_keras_serializable) before "
                f"loading. Received: {base=}"
            )
        for extension, name in recipe[1:]:
            optimizer_class = extend(optimizer_class, EXTENSIONS[extension], name)
        return optimizer_class.from_config(config, custom_objects)


def extend(BaseOptimizer: Any, extension: Any, name: str | None = None) -> Any:
    """The class that applies `BaseOptimizer` first and `extension` second."""
    if not (isinstance(BaseOptimizer, type) and issubclass(BaseOptimizer, keras.optimizers.Optimizer)):
        raise ValueError(f"`extend_with_*` extends optimizer classes. Received: BaseOptimizer={BaseOptimizer}")
    if issubclass(BaseOptimizer, extension) or getattr(BaseOptimizer, "decays", False) and extension is WeightDecay:
        raise ValueError(f"{BaseOptimizer.__name__} already has this feature. Received: {extension.__name__} over it")
    return _extended_class(BaseOptimizer, extension, name or f"{BaseOptimizer.__name__}With{extension.__name__}")


@cache  # the same arguments give the same class, even when an optimizer is loaded
def _extended_class(BaseOptimizer: Any, extension: Any, name: str) -> Any:
    below = getattr(BaseOptimizer, "recipe", None) or (("base", keras.saving.get_registered_name(BaseOptimizer)),)
    optimizer_class = type(name, (extension, BaseOptimizer), {"recipe": (*below, (extension.__name__, name))})
    register(optimizer_class)
    register(Extension)  # loading finds `Extension` under the shared name, which reads the recipe
    return optimizer_class


class WeightDecay(ExcludesFromDecay, Extension):
    def __init__(
        self, *args: Any, weight_decay_rate: float = 0.01, exclude_from_weight_decay: Any = (), **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.weight_decay_rate = float(weight_decay_rate)
        self._undecayed = as_patterns(exclude_from_weight_decay)

    def _decay_flags(self, paths: list[str]) -> list[Any]:
        excluded = matches_any(self._undecayed, paths, "exclude_from_weight_decay", may_miss=USUAL_EXCLUSIONS)
        return [not out for out in excluded]

    def variable_settings(self, paths: list[str]) -> list[Any]:
        flagged = zip(super().variable_settings(paths), self._decay_flags(paths), strict=True)
        return [{**setting, "decayed": setting["decayed"] or flag} for setting, flag in flagged]

    def build(self, variables: Any) -> None:
        if not self.built:
            self._decayed = self._decay_flags([path_of(v) for v in variables])
            super().build(variables)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        index, old = self._get_variable_index(variable), value_of(variable)
        super().update_step(gradient, variable, learning_rate)
        if self._decayed[index]:
            rate = ops.cast(learning_rate, variable.dtype) * self._rate_of(index)
            self.assign_sub(variable, rate * self.weight_decay_rate * old)

    def get_config(self) -> dict[str, Any]:
        config = {"weight_decay_rate": self.weight_decay_rate, "exclude_from_weight_decay": list(self._undecayed)}
        return {**super().get_config(), **config}


class LayerAdaptation(Extension):
    def __init__(self, *args: Any, exclude_from_layer_adaptation: Any = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._unadapted = as_patterns(exclude_from_layer_adaptation)

    def build(self, variables: Any) -> None:
        if not self.built:
            paths = [path_of(v) for v in variables]
            excluded = matches_any(self._unadapted, paths, "exclude_from_layer_adaptation", may_miss=USUAL_EXCLUSIONS)
            self._adapted = [not out for out in excluded]
            super().build(variables)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        index, old = self._get_variable_index(variable), value_of(variable)
        super().update_step(gradient, variable, learning_rate)
        if self._adapted[index]:
            change = variable - old
            rate = ops.maximum(ops.cast(learning_rate, variable.dtype) * self._rate_of(index), keras.config.epsilon())
            weight_norm, step_norm = ops.norm(old), ops.norm(change / rate)
            both = ops.logical_and(weight_norm > 0, step_norm > 0)
            trust = ops.where(both, weight_norm / ops.where(both, step_norm, 1.0), 1.0)
            self.assign(variable, old + trust * change)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "exclude_from_layer_adaptation": list(self._unadapted)}


class PiecewiseLinearRate(Extension):
    def __init__(self, *args: Any, lr_schedule: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.weight_decay:
            raise ValueError(
                "`lr_schedule` needs `extend_with_weight_decay`: Keras' `weight_decay` would ignore the schedule. "
                f"Received: weight_decay={self.weight_decay}"
            )
        self._factor = PiecewiseLinear({0: 1} if lr_schedule is None else lr_schedule)

    def _backend_update_step(self, grads: Any, variables: Any, learning_rate: Any) -> None:
        # Not in `learning_rate`: callbacks read that, scale it and write it back. Counts batches, as bert4keras.
        super()._backend_update_step(grads, variables, learning_rate * self._factor(self._iterations))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "lr_schedule": self._factor.get_config()["points"]}


class ParameterWiseRate(Extension):
    def __init__(self, *args: Any, paramwise_lr_schedule: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._schedule = tuple((str(part), float(factor)) for part, factor in dict(paramwise_lr_schedule or {}).items())

    def _factors(self, paths: list[str]) -> Any:
        return multipliers({re.escape(part): k for part, k in self._schedule}, paths, "paramwise_lr_schedule")

    def variable_settings(self, paths: list[str]) -> list[Any]:
        scaled = zip(super().variable_settings(paths), self._factors(paths), strict=True)
        return [{**setting, "multiplier": setting["multiplier"] * factor} for setting, factor in scaled]

    def build(self, variables: Any) -> None:
        if not self.built:
            self._wise = self._factors([path_of(v) for v in variables])
            super().build(variables)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        factor, old = self._wise[self._get_variable_index(variable)], value_of(variable)
        super().update_step(gradient, variable, learning_rate)
        if factor != 1:
            self.assign(variable, old + factor * (variable - old))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "paramwise_lr_schedule": dict(self._schedule)}


class GradientAccumulation(Extension):
    def __init__(self, *args: Any, grad_accum_steps: int = 2, **kwargs: Any) -> None:
        steps = int(grad_accum_steps) if grad_accum_steps > 1 else None
        if kwargs.setdefault("gradient_accumulation_steps", steps) not in (None, steps):
            raise ValueError(
                "`grad_accum_steps` and `gradient_accumulation_steps` are the same setting and must be equal. "
                f"Received: {grad_accum_steps} and {kwargs['gradient_accumulation_steps']}"
            )
        super().__init__(*args, **{**kwargs, "gradient_accumulation_steps": steps})

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "grad_accum_steps": self.gradient_accumulation_steps or 1}


class Lookahead(Extension):
    def __init__(self, *args: Any, steps_per_slow_update: int = 5, slow_step_size: float = 0.5, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.steps_per_slow_update = int(steps_per_slow_update)
        self.slow_step_size = float(slow_step_size)

    def build(self, variables: Any) -> None:
        if not self.built:
            super().build(variables)
            self._slow = [self.add_variable_from_reference(v, "slow", initializer=copy_of(v)) for v in variables]

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        super().update_step(gradient, variable, learning_rate)
        slow = self._slow[self._get_variable_index(variable)]
        due = ops.equal((self.iterations + 1) % self.steps_per_slow_update, 0)
        moved = slow + self.slow_step_size * (variable - slow)
        for one in (slow, variable):
            self.assign(one, ops.where(due, moved, value_of(one)))

    def get_config(self) -> dict[str, Any]:
        config = {"steps_per_slow_update": self.steps_per_slow_update, "slow_step_size": self.slow_step_size}
        return {**super().get_config(), **config}


class LazyOptimization(Extension):
    def __init__(self, *args: Any, include_in_lazy_optimization: Any = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._included = as_patterns(include_in_lazy_optimization)

    def build(self, variables: Any) -> None:
        if not self.built:
            paths = [path_of(v) for v in variables]
            self._lazy = matches_any(self._included, paths, "include_in_lazy_optimization")
            super().build(variables)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        lazy, old = self._lazy[self._get_variable_index(variable)], value_of(variable)
        super().update_step(gradient, variable, learning_rate)
        if lazy:
            touched = ops.any(ops.not_equal(gradient, 0), axis=-1, keepdims=True)
            self.assign(variable, ops.where(touched, value_of(variable), old))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "include_in_lazy_optimization": list(self._included)}


class MovingAverage(Extension):
    def __init__(self, *args: Any, ema_momentum: float = 0.999, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.ema_momentum = float(ema_momentum)
        self._old_weights: Any = None
        self._replaced_at = 0  # the step after which averages replaced them

    def build(self, variables: Any) -> None:
        if not self.built:
            super().build(variables)
            self._averages = self.add_optimizer_variables(variables, "ema")

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        super().update_step(gradient, variable, learning_rate)
        self._update_average(variable)

    def _backend_update_step(self, grads: Any, variables: Any, learning_rate: Any) -> None:
        super()._backend_update_step(grads, variables, learning_rate)
        updated = {self._get_variable_index(variable) for variable in variables}
        for index, variable in enumerate(self._trainable_variables):
            if index not in updated:  # frozen since, or without a gradient: its average would stay at zero
                self._update_average(variable)

    def _update_average(self, variable: Any) -> None:
        average = self._averages[self._get_variable_index(variable)]
        self.assign(average, self.ema_momentum * average + (1 - self.ema_momentum) * variable)

    def apply_ema_weights(self, bias_correction: bool = True) -> None:
        """Assigns the averages, which start at 0 and are corrected for it, to the model; see `reset_old_weights`."""
        steps = int(ops.convert_to_numpy(self.iterations)) if self.built else 0
        if not steps:
            raise ValueError("`apply_ema_weights` needs at least one optimizer step. Received: 0 steps so far")
        scale = 1 - self.ema_momentum**steps if bias_correction else 1.0
        if self._old_weights is None or steps != self._replaced_at:
            self._replaced_at = steps
            self._old_weights = tuple(ops.convert_to_numpy(v).copy() for v in self._trainable_variables)
        for variable, average in zip(self._trainable_variables, self._averages, strict=True):
            variable.assign(ops.convert_to_tensor(average) / scale)

    def reset_old_weights(self) -> None:
        """Restores the weights that `apply_ema_weights` replaced."""
        if self._old_weights is None:
            raise ValueError("`reset_old_weights` needs a call of `apply_ema_weights` before. Received: none")
        for variable, old in zip(self._trainable_variables, self._old_weights, strict=True):
            variable.assign(old)
        self._old_weights = None

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "ema_momentum": self.ema_momentum}


EXTENSIONS = {extension.__name__: extension for extension in Extension.__subclasses__()}


def value_of(variable: Any) -> Any:
    """A copy of the current value of a variable; later assignments do not change the copy."""
    return ops.stop_gradient(ops.copy(variable))


def extend_with_weight_decay(BaseOptimizer: type, name: str | None = None) -> type:
    """Adds decoupled weight decay: theta -= learning_rate * weight_decay_rate * theta, with theta from before the step.

    Arguments of the new class: `weight_decay_rate=0.01`; `exclude_from_weight_decay=[]`, regular expressions that are
    searched in the variable path.
    """
    return extend(BaseOptimizer, WeightDecay, name)


def extend_with_layer_adaptation(BaseOptimizer: type, name: str | None = None) -> type:
    """Adds LAMB: each variable moves by learning_rate * its own norm. https://arxiv.org/abs/1904.00962

    Argument of the new class: `exclude_from_layer_adaptation=[]`, regular expressions for parts of variable paths.
    """
    return extend(BaseOptimizer, LayerAdaptation, name)


def extend_with_piecewise_linear_lr(BaseOptimizer: type, name: str | None = None) -> type:
    """Adds a piecewise linear factor on the learning rate. Callbacks can still change `learning_rate` itself.

    Argument of the new class: `lr_schedule={0: 1}`. `{1000: 1, 2000: 0.1}` rises from 0 to the full learning rate over
    1000 batches, falls to a tenth over the next 1000, and stays there. As in bert4keras, the schedule counts batches,
    even under gradient accumulation; `PiecewiseLinear` as a `learning_rate` counts optimizer steps.
    """
    return extend(BaseOptimizer, PiecewiseLinearRate, name)


def extend_with_gradient_accumulation(BaseOptimizer: type, name: str | None = None) -> type:
    """Adds gradient accumulation: one step per `grad_accum_steps` batches, with the mean of their gradients.

    Argument of the new class: `grad_accum_steps=2`. Keras' own accumulation makes the step at the last of these
    batches. bert4keras makes it one batch later, an empty one at the start, and counts batches in its bias correction.
    """
    return extend(BaseOptimizer, GradientAccumulation, name)


def extend_with_lookahead(BaseOptimizer: type, name: str | None = None) -> type:
    """Adds Lookahead: every k steps, the weights move back towards slow weights. https://arxiv.org/abs/1907.08610

    Arguments of the new class: `steps_per_slow_update=5` (k) and `slow_step_size=0.5` (alpha). The slow weights start
    at the initial weights, as in the paper. In bert4keras they start at zero, which shrinks a pretrained model.
    """
    return extend(BaseOptimizer, Lookahead, name)


def extend_with_lazy_optimization(BaseOptimizer: type, name: str | None = None) -> type:
    """Adds lazy updates for embeddings: a row of a variable moves only if its gradient is not 0.

    Argument of the new class: `include_in_lazy_optimization=[]`, regular expressions for parts of variable paths.
    """
    return extend(BaseOptimizer, LazyOptimization, name)


def extend_with_exponential_moving_average(BaseOptimizer: type, name: str | None = None) -> type:
    """Adds moving averages of the weights; `apply_ema_weights()` uses them, `reset_old_weights()` reverts this.

    Argument of the new class: `ema_momentum=0.999`. Unlike with Keras' `use_ema`, the average starts at zero with a
    bias correction, and does not replace the weights when `fit` ends.
    """
    return extend(BaseOptimizer, MovingAverage, name)


def extend_with_parameter_wise_lr(BaseOptimizer: type, name: str | None = None) -> type:
    """Adds a factor on the updates of chosen variables, including the decay of an earlier extension.

    Argument of the new class: `paramwise_lr_schedule={}`, a dict from parts of a variable path to factors. A part is
    plain text, not a regular expression. The factors of all matching parts are multiplied: "Transformer-1" also
    matches Transformer-10, "Transformer-1-" does not.
    """
    return extend(BaseOptimizer, ParameterWiseRate, name)

"""Learning-rate schedules over optimizer steps: a warmup in front of any schedule, and piecewise linear."""

import math
from typing import Any

from kcrf.backend import Tensor, keras, loop_ops, ops
from kcrf.optimizers.variables import check_numbers


@keras.saving.register_keras_serializable(package="kcrf")
class PiecewiseLinear(keras.optimizers.schedules.LearningRateSchedule):
    """Linear interpolation between points, as bert4keras' `lr_schedule`: from 0 at step 0, constant after the last.

    Args:
        points: A dict from optimizer steps to factors. `{1000: 1, 2000: 0.1}` rises to 1 over 1000 steps, falls to 0.1
            over the next 1000 steps, and stays there.
        peak: The learning rate at factor 1. Defaults to 1.0: the factors are the learning rates.

    Example:

    >>> schedule = PiecewiseLinear({1000: 1, 2000: 0.1}, peak=2.0)
    >>> [round(float(schedule(step)), 3) for step in (0, 500, 1000, 1500, 2000, 9000)]
    [0.0, 1.0, 2.0, 1.1, 0.2, 0.2]
    """

    def __init__(self, points: dict[int, float], peak: float = 1.0, name: str = "PiecewiseLinear") -> None:
        super().__init__()
        points = dict(points)
        steps = sorted((int(step), float(factor)) for step, factor in points.items())
        if not steps or steps[0][0] < 0 or any(0 < float(step) < 1 for step in points):  # no fractions of a run
            raise ValueError(f"`points` needs at least one step, and whole steps >= 0. Received: points={points}")
        check_numbers({"peak": peak} | {f"points[{step}]": factor for step, factor in steps})
        self.points = dict(steps)
        self.peak = float(peak)
        self.name = name

    def __call__(self, step: Any) -> Tensor:
        step = ops.cast(step, "float32")
        corners = list(self.points.items()) if 0 in self.points else [(0, 0.0), *self.points.items()]
        value = ops.zeros_like(step) + corners[0][1]
        for (start, low), (end, high) in zip(corners, corners[1:], strict=False):
            value = value + (high - low) * loop_ops.clip((step - start) / (end - start), 0.0, 1.0)
        return self.peak * value

    def get_config(self) -> dict[str, Any]:
        points = {str(step): factor for step, factor in self.points.items()}  # JSON has no integer keys
        return {"points": points, "peak": self.peak, "name": self.name}


@keras.saving.register_keras_serializable(package="kcrf")
class Warmup(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warmup from 0, followed by any schedule, which begins when the warmup ends.

    Args:
        steps: Number of optimizer steps of the warmup; 0 for none.
        then: The schedule after the warmup, or a constant learning rate. The warmup rises to its first value.

    Example:

    >>> schedule = Warmup(10, keras.optimizers.schedules.CosineDecay(1.0, decay_steps=20))
    >>> [round(float(schedule(step)), 3) for step in (0, 5, 10, 20, 30)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """

    def __init__(self, steps: int, then: Any, name: str = "Warmup") -> None:
        super().__init__()
        if steps < 0 or 0 < steps < 1:
            raise ValueError(f"`steps` must be a number of steps, 0 or more. Received: steps={steps}")
        self.steps = int(steps)
        self.then = keras.optimizers.schedules.deserialize(then) if isinstance(then, dict) else then
        self.name = name

    def __call__(self, step: Any) -> Tensor:
        step = ops.cast(step, "float32")
        rise = loop_ops.clip(step / self.steps, 0.0, 1.0) if self.steps else ops.ones_like(step)
        after = loop_ops.clip(step - self.steps, 0.0, math.inf)
        return rise * (ops.cast(self.then(after), "float32") if callable(self.then) else self.then)

    def get_config(self) -> dict[str, Any]:
        then = keras.optimizers.schedules.serialize(self.then) if callable(self.then) else self.then
        return {"steps": self.steps, "then": then, "name": self.name}


@keras.saving.register_keras_serializable(package="kcrf")
class WarmupLinearDecay(Warmup):
    """A linear rise from 0 to `peak`, then a linear fall to 0.

    The decay begins when the warmup ends. In Google BERT it begins at step 0 and the warmup overrides it, so that the
    learning rate jumps to `peak * (1 - warmup / total)` when the warmup ends: `bert_jump=True`.

    Args:
        peak: The learning rate at the end of the warmup.
        warmup: Number of optimizer steps of the warmup; 0 for none.
        total: The optimizer step at which the learning rate is 0 again.
        bert_jump: Whether to follow google-research/bert, including the jump. Defaults to False.

    Example:

    >>> schedule = WarmupLinearDecay(peak=1.0, warmup=10, total=100)
    >>> [round(float(schedule(step)), 2) for step in (0, 5, 10, 55, 100)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    >>> original = WarmupLinearDecay(peak=1.0, warmup=10, total=100, bert_jump=True)
    >>> [round(float(original(step)), 2) for step in (9, 10, 55)]
    [0.9, 0.9, 0.45]
    """

    def __init__(
        self, peak: float, warmup: int, total: int, bert_jump: bool = False, name: str = "WarmupLinearDecay"
    ) -> None:
        if not 0 <= warmup < total or total < 1:
            raise ValueError(f"The warmup must end before the run. Received: warmup={warmup}, total={total}")
        self.peak, self.total, self.bert_jump = float(peak), int(total), bool(bert_jump)
        super().__init__(warmup, PiecewiseLinear({0: 1, self.total - int(warmup): 0}, self.peak), name)

    def __call__(self, step: Any) -> Tensor:
        if not self.bert_jump:
            return super().__call__(step)
        step = ops.cast(step, "float32")
        fall = self.peak * loop_ops.clip((self.total - step) / self.total, 0.0, 1.0)
        return ops.where(step < self.steps, self.peak * step / max(self.steps, 1), fall)

    def get_config(self) -> dict[str, Any]:
        config = {"peak": self.peak, "warmup": self.steps, "total": self.total}
        return {**config, "bert_jump": self.bert_jump, "name": self.name}

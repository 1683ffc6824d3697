"""Learning rates as functions of the optimizer step: warmup with linear or exponential decay, and any broken line."""

import math
from typing import Any

from kcrf.backend import Tensor, keras, ops

__all__ = ["PiecewiseLinear", "WarmupExponentialDecay", "WarmupLinearDecay"]


@keras.saving.register_keras_serializable(package="kcrf")
class PiecewiseLinear(keras.optimizers.schedules.LearningRateSchedule):
    """A broken line through given points, as bert4keras' `lr_schedule`.

    Before the first point the line rises from 0 at step 0; after the last one it stays level.

    Args:
        points: dict of optimizer step to factor: `{1000: 1, 2000: 0.1}` rises to 1 over 1000 steps, falls to 0.1 over
            the next 1000 and stays there.
        peak: The learning rate at factor 1. Defaults to 1.0, where the factors are the rates themselves.

    Raises:
        ValueError: There are no points, or a step is negative.

    Example:

    >>> schedule = PiecewiseLinear({1000: 1, 2000: 0.1}, peak=2.0)
    >>> [round(float(schedule(step)), 3) for step in (0, 500, 1000, 1500, 2000, 9000)]
    [0.0, 1.0, 2.0, 1.1, 0.2, 0.2]
    """

    def __init__(self, points: dict[int, float], peak: float = 1.0, name: str = "PiecewiseLinear") -> None:
        super().__init__()
        steps = sorted((int(step), float(factor)) for step, factor in dict(points).items())
        if not steps or steps[0][0] < 0:
            raise ValueError(f"`points` needs at least one step, none of them negative. Received: points={points}")
        self.points = dict(steps)
        self.peak = float(peak)
        self.name = name

    def __call__(self, step: Any) -> Tensor:
        return self.peak * broken_line(step, self.points)

    def get_config(self):
        points = {str(step): factor for step, factor in self.points.items()}  # JSON has no integer keys
        return {"points": points, "peak": self.peak, "name": self.name}


def broken_line(step, points):
    """The line through `(0, 0)`, unless a point stands at 0, and the sorted points, level after the last one."""
    step = ops.cast(step, "float32")
    corners = list(points.items()) if 0 in points else [(0, 0.0), *points.items()]
    value = ops.zeros_like(step) + corners[0][1]
    for (start, low), (end, high) in zip(corners, corners[1:], strict=False):
        value = value + (high - low) * ops.clip((step - start) / (end - start), 0.0, 1.0)
    return value


@keras.saving.register_keras_serializable(package="kcrf")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """A linear rise from 0 to `peak`, then a linear fall to 0.

    Google BERT lets the fall begin at step 0 and puts the warmup over it, so that its rate drops from `peak` to
    `peak * (1 - warmup / total)` in one step when the warmup ends. Here the fall begins where the warmup ends;
    `bert_jump=True` gives the original.

    Args:
        peak: The learning rate at the end of the warmup.
        warmup: Number of optimizer steps of the rise, 0 for none.
        total: The optimizer step at which the rate is 0 again.
        bert_jump: Whether to follow google-research/bert `optimization.py`, jump included. Defaults to False.

    Raises:
        ValueError: Not `0 <= warmup < total`.

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
        super().__init__()
        if not 0 <= warmup < total:
            raise ValueError(f"The warmup must end before the run. Received: warmup={warmup}, total={total}")
        self.peak = float(peak)
        self.warmup = int(warmup)
        self.total = int(total)
        self.bert_jump = bool(bert_jump)
        self.name = name

    def __call__(self, step: Any) -> Tensor:
        step = ops.cast(step, "float32")
        fall_start = 0 if self.bert_jump else self.warmup
        fall = (self.total - step) / (self.total - fall_start)
        rise = step / max(self.warmup, 1)
        return self.peak * ops.where(step < self.warmup, rise, ops.maximum(fall, 0.0))

    def get_config(self):
        names = ("peak", "warmup", "total", "bert_jump", "name")
        return {name: getattr(self, name) for name in names}


@keras.saving.register_keras_serializable(package="kcrf")
class WarmupExponentialDecay(keras.optimizers.schedules.LearningRateSchedule):
    """A linear rise from 0 to `peak`, then a fall by the same factor in each step, to `peak * final` at `total`.

        rate = peak * step / warmup                                          up to the warmup
        rate = peak * final ** ((step - warmup) / (total - warmup))          after it

    Args:
        peak: The learning rate at the end of the warmup.
        warmup: Number of optimizer steps of the rise, 0 for none.
        total: The optimizer step at which the rate is `peak * final`; after it the rate stays there.
        final: The factor at the end, above 0 and below 1. Defaults to 0.01.

    Raises:
        ValueError: Not `0 <= warmup < total`, or `final` is out of range.

    Example:

    >>> schedule = WarmupExponentialDecay(peak=1.0, warmup=10, total=30)
    >>> [round(float(schedule(step)), 3) for step in (0, 5, 10, 20, 30, 99)]
    [0.0, 0.5, 1.0, 0.1, 0.01, 0.01]
    """

    def __init__(
        self, peak: float, warmup: int, total: int, final: float = 0.01, name: str = "WarmupExponentialDecay"
    ) -> None:
        super().__init__()
        if not 0 <= warmup < total:
            raise ValueError(f"The warmup must end before the run. Received: warmup={warmup}, total={total}")
        if not 0 < final < 1:
            raise ValueError(f"`final` must be above 0 and below 1. Received: final={final}")
        self.peak = float(peak)
        self.warmup = int(warmup)
        self.total = int(total)
        self.final = float(final)
        self.name = name

    def __call__(self, step: Any) -> Tensor:
        step = ops.cast(step, "float32")
        fallen = ops.clip((step - self.warmup) / (self.total - self.warmup), 0.0, 1.0)
        fall = ops.exp(fallen * math.log(self.final))
        return self.peak * ops.where(step < self.warmup, step / max(self.warmup, 1), fall)

    def get_config(self):
        names = ("peak", "warmup", "total", "final", "name")
        return {name: getattr(self, name) for name in names}

"""The learning rate of a run, by optimizer step."""

from kcrf.backend import keras
from kcrf.optimizers import PiecewiseLinear, WarmupExponentialDecay, WarmupLinearDecay

__all__ = ["learning_rate"]


def learning_rate(settings, steps):
    """The schedule of the settings over this many steps, a function from the optimizer step to the rate.

    Args:
        settings: `Settings`.
        steps: How many steps the run has.
    """
    peak, warmup = settings.learning_rate, int(steps * settings.warmup)
    if settings.schedule == "constant":
        return PiecewiseLinear({warmup: 1}, peak)
    if settings.schedule == "cosine":
        warmup = max(1, warmup)  # Keras divides by it
        return keras.optimizers.schedules.CosineDecay(
            0.0, max(1, steps - warmup), warmup_target=peak, warmup_steps=warmup
        )
    return {"linear": WarmupLinearDecay, "exponential": WarmupExponentialDecay}[settings.schedule](peak, warmup, steps)

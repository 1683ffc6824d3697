"""The learning rate of a run, by optimizer step."""

from kcrf.backend import keras
from kcrf.optimizers import Warmup, WarmupLinearDecay

__all__ = ["learning_rate"]

_LAST_FRACTION = 0.01  # of the highest learning rate, at the end of an exponential decay


def learning_rate(settings, steps):
    """The schedule of the settings over this many steps, a function from the optimizer step to the rate.

    Args:
        settings: `Settings`.
        steps: How many steps the run has.
    """
    peak, warmup = settings.learning_rate, int(steps * settings.warmup)
    if settings.schedule == "constant":
        return Warmup(warmup, peak)
    if settings.schedule == "cosine":
        warmup = max(1, warmup)  # Keras divides by it
        return keras.optimizers.schedules.CosineDecay(
            0.0, max(1, steps - warmup), warmup_target=peak, warmup_steps=warmup
        )
    if settings.schedule == "exponential":
        return Warmup(warmup, keras.optimizers.schedules.ExponentialDecay(peak, steps - warmup, _LAST_FRACTION))
    return WarmupLinearDecay(peak, warmup, steps)

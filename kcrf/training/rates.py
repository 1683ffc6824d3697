"""The learning rate of a run by optimizer step, and the precision of its layers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kcrf.backend import keras
from kcrf.optimizers import Warmup, WarmupLinearDecay

_LAST_FRACTION = 0.01  # of the highest learning rate, at the end of an exponential decay


def learning_rate(peak: Any, schedule: str | None, warmup: Any, steps: int) -> Any:
    """The learning rate of a run: a function from the optimizer step, or a number if it is constant."""
    warmup = int(steps * warmup)
    if schedule == "constant":
        return Warmup(warmup, peak)
    if schedule == "cosine":
        warmup = max(1, warmup)  # Keras divides by it
        left = max(1, steps - warmup)
        return keras.optimizers.schedules.CosineDecay(0.0, left, warmup_target=peak, warmup_steps=warmup)
    if schedule == "exponential":
        return Warmup(warmup, keras.optimizers.schedules.ExponentialDecay(peak, steps - warmup, _LAST_FRACTION))
    return WarmupLinearDecay(peak, warmup, steps)


@contextmanager
def precision(name: str) -> Iterator[None]:
    """A context whose new layers compute in "float32", "float16" or "bfloat16". Weights are always float32."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(name if name == "float32" else f"mixed_{name}")
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)

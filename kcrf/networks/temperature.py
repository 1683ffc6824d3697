"""The temperature that calibrates the probabilities of a tagger (Guo et al., 2017, https://arxiv.org/abs/1706.04599)."""

import math
from collections.abc import Callable

FEWEST_TAGS = 1000  # fewer known tags are too few to fit a temperature
_LOWEST, _HIGHEST = 0.5, 4.0
_STEPS = 11  # 1 % precision
_GOLDEN = (math.sqrt(5) - 1) / 2


def most_likely_temperature(log_likelihood: Callable[[float], float]) -> float:
    """The temperature from 0.5 to 4 with the highest log likelihood, by golden-section search.

    The log likelihood is concave in 1 / temperature, so there is one maximum. The temperature does not change the best
    path.

    >>> most_likely_temperature(lambda temperature: -((1 / temperature - 0.5) ** 2))
    2.0
    """
    low, high = math.log(_LOWEST), math.log(_HIGHEST)
    for _ in range(_STEPS):
        lower, upper = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if log_likelihood(math.exp(lower)) > log_likelihood(math.exp(upper)):
            high = upper
        else:
            low = lower
    return round(math.exp((low + high) / 2), 2)

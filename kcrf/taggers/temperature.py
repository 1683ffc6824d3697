"""The temperature that calibrates the probabilities of a tagger (Guo et al., 2017, https://arxiv.org/abs/1706.04599)."""

import math

import numpy as np

from kcrf import crf
from kcrf.backend import ops

__all__ = ["best_temperature"]

_FEWEST_TAGS = 1000  # with fewer known tags, chance decides
_LOWEST, _HIGHEST = 0.5, 4.0
_STEPS = 11  # of golden section search: 1 % precision
_GOLDEN = (math.sqrt(5) - 1) / 2
_IMPOSSIBLE = crf.FORBIDDEN / 2  # a log likelihood below this: the constraints forbid the tags


def best_temperature(layer, emissions, tags):
    """The temperature under which the tags are most probable, from 0.5 to 4.

    The log likelihood is concave in 1 / temperature, so there is one maximum. The best path does not depend on it.

    Args:
        layer: The `ConditionalRandomField`.
        emissions: What the layer returned, `(batch, time, tags)`.
        tags: `(batch, time)`, negative where unknown.

    Returns:
        A float with two decimals; 1 with fewer than 1,000 known tags.
    """

    def likelihoods(temperature):
        return ops.convert_to_numpy(crf.log_likelihood(layer.chain(emissions).divided(temperature), tags))

    legal = likelihoods(1.0) > _IMPOSSIBLE  # (batch,)
    emissions, tags = emissions[legal], tags[legal]
    if np.sum(tags >= 0) < _FEWEST_TAGS:
        return 1.0
    low, high = math.log(_LOWEST), math.log(_HIGHEST)
    for _ in range(_STEPS):
        lower, upper = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if likelihoods(math.exp(lower)).sum() > likelihoods(math.exp(upper)).sum():
            high = upper
        else:
            low = lower
    return round(math.exp((low + high) / 2), 2)

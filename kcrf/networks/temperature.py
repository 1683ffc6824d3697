"""The temperature that calibrates the probabilities of a tagger (Guo et al., 2017, https://arxiv.org/abs/1706.04599)."""

from typing import Any

import numpy as np

from kcrf import crf
from kcrf.backend import ops
from kcrf.networks.golden_section import FEWEST_TAGS, most_likely_temperature

_IMPOSSIBLE = crf.FORBIDDEN / 2  # a log likelihood below this: the constraints forbid the tags


def best_temperature(layer: Any, emissions: np.ndarray, tags: np.ndarray) -> float:
    """The temperature from 0.5 to 4 under which the tags are most probable.

    The log likelihood is concave in 1 / temperature, so there is one maximum. The temperature does not change the best
    path.

    Args:
        layer: The `ConditionalRandomField`.
        emissions: The output of the layer, `(batch, time, tags)`.
        tags: `(batch, time)`, negative for unknown tags.

    Returns:
        A float with two decimals; 1 if there are fewer than 1,000 known tags.
    """

    def likelihoods(temperature: float) -> np.ndarray:
        return ops.convert_to_numpy(crf.log_likelihood(layer.chain(emissions).divided(temperature), tags))

    legal = likelihoods(1.0) > _IMPOSSIBLE  # (batch,)
    emissions, tags = emissions[legal], tags[legal]
    if np.sum(tags >= 0) < FEWEST_TAGS:
        return 1.0
    return most_likely_temperature(lambda temperature: likelihoods(temperature).sum())

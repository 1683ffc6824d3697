"""What networks share that give posterior probabilities in place of scores. Needs NumPy only."""

from typing import NamedTuple

import numpy as np

from kcrf.spans import Posterior, span_probabilities
from kcrf.taggers.k_best import best_sequences

__all__ = ["PosteriorNetwork", "Scores"]


class Scores(NamedTuple):
    """What probabilities are computed from, arrays `(rows, time, tags)`; see `kcrf.spans.Posterior`."""

    marginals: np.ndarray
    onward: np.ndarray


class PosteriorNetwork:
    """Probabilities and alternatives out of `Scores`.

    Args:
        scheme: The `TagScheme`.
        transitions: `(tags, tags)` float64, from which probabilities are computed.
    """

    few_shapes = False

    def __init__(self, scheme, transitions):
        self.scheme, self._transitions = scheme, transitions

    def marginals(self, scores):
        """The posterior probability of every tag, `(rows, time, tags)`."""
        return scores.marginals

    def span_confidences(self, scores, spans):
        """As `ConditionalRandomField.span_confidence`."""
        return span_probabilities(self._posterior(scores), self.scheme, spans)

    def best_paths(self, scores, k):
        """As `KerasTaggingNetwork.best_paths`."""
        return best_sequences(self._posterior(scores), k, self.scheme if self.scheme.types else None)

    def _posterior(self, scores):
        return Posterior(scores.marginals, scores.onward, self._transitions, scores.marginals.any(axis=-1))

"""The base of networks that return posterior probabilities instead of scores. Needs NumPy only."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from kcrf.chains import Posterior, best_sequences, span_probabilities
from kcrf.tags import TagScheme


class Scores(NamedTuple):
    """The arrays `(rows, time, tags)` from which probabilities are computed; see `kcrf.chains.posterior.Posterior`."""

    marginals: np.ndarray
    onward: np.ndarray


class PosteriorNetwork:
    """Computes probabilities and the k best paths from `Scores`.

    Args:
        scheme: The `TagScheme`.
        transitions: `(tags, tags)` float64, from which probabilities are computed.
    """

    few_shapes = False

    def __init__(self, scheme: TagScheme, transitions: np.ndarray) -> None:
        self.scheme, self._transitions = scheme, transitions

    def marginals(self, scores: Scores) -> np.ndarray:
        """The posterior probability of every tag, `(rows, time, tags)`."""
        return scores.marginals

    def entropies(self, scores: Scores) -> np.ndarray:
        """The entropy of the tag sequences of each row in nats, `(rows,)`."""
        return self._posterior(scores).entropies()

    def span_confidences(self, scores: Scores, spans: Sequence[Sequence[tuple[Any, ...]]]) -> Sequence[np.ndarray]:
        """As `ConditionalRandomField.span_confidence`."""
        return span_probabilities(self._posterior(scores), self.scheme, spans)

    def best_paths(self, scores: Scores, k: int) -> tuple[np.ndarray, np.ndarray]:
        """As `kcrf.networks.network.TaggingNetwork.best_paths`."""
        return best_sequences(self._posterior(scores), k, self.scheme if self.scheme.types else None)

    def _posterior(self, scores: Scores) -> Posterior:
        return Posterior(scores.marginals, scores.onward, self._transitions, scores.marginals.max(axis=-1) > 0)

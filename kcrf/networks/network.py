"""The networks of taggers and classifiers: in Keras, linear or in exported files. Needs NumPy only."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from kcrf.chains.posterior import Spans
from kcrf.tags import TagScheme

Arrays = Mapping[str, np.ndarray]
Decoded = tuple[np.ndarray, Any]  # the best paths, and the scores for the other methods
Counts = tuple[np.ndarray, ...]  # expected counts of tags, and of steps
FEWEST_TAGS = 1000  # fewer known tags are too few to fit a temperature
_LOWEST, _HIGHEST = 0.5, 4.0
_STEPS = 11  # 1 % precision
_GOLDEN = (math.sqrt(5) - 1) / 2


class TaggingNetwork(ABC):
    """The network of a tagger, in Keras, linear or in an exported file."""

    scheme: TagScheme
    few_shapes = False  # whether the network is compiled for each shape of its inputs

    @abstractmethod
    def decode(self, inputs: Arrays, allowed: np.ndarray, rows: int, with_scores: bool = True) -> Decoded:
        """The best paths, `(rows, time)`, -1 where masked, and the scores for the other methods, or None.

        `allowed (batch, time, tags)` is 0 for allowed tags and -inf for others; rows from `rows` on are padding.
        """

    @abstractmethod
    def marginals(self, scores: Any) -> np.ndarray:
        """The posterior probability of every tag, `(rows, time, tags)`."""

    @abstractmethod
    def entropies(self, scores: Any) -> np.ndarray:
        """The entropy of the tag sequences of each row in nats, `(rows,)`."""

    @abstractmethod
    def span_probabilities(self, scores: Any, spans: Spans) -> Sequence[np.ndarray]:
        """For each row an array with the posterior probability of each span. Spans are in positions."""

    @abstractmethod
    def best_paths(self, scores: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k best paths `(rows, k, time)` and their log probabilities `(rows, k)`, -inf where there are fewer."""


class TrainedNetwork(TaggingNetwork):
    """The network of a tagger in a run folder, in Keras or linear, which can be calibrated and teach."""

    model: Any  # the Keras model, without an optimizer, or the `kcrf.linear.LinearModel`; do not save it
    temperature: float  # all scores are divided by it before probabilities are computed

    @abstractmethod
    def fit_temperature(self, inputs: Arrays, tags: np.ndarray) -> None:
        """Sets the most likely temperature for tags `(windows, time)`, negative if unknown; 1 for less than 1,000."""

    @abstractmethod
    def emissions(self, inputs: Arrays) -> np.ndarray:
        """The emission scores of a batch, `(batch, time, tags)`."""

    @abstractmethod
    def as_teacher(self, constraints: TagScheme | None, temperature: float) -> "TrainedNetwork":
        """The network whose scores `expected_counts` takes, with the same constraints and temperature."""

    @abstractmethod
    def expected_counts(self, scores: Any, constraints: TagScheme | None, temperature: float) -> Counts:
        """As `ConditionalRandomField.expected_counts`: of tags `(rows, time, tags)`, of steps `(rows, tags, tags)`."""


class KerasNetwork(TrainedNetwork):
    """The network of a tagger in Keras, which can also be trained."""

    crf: Any  # the `ConditionalRandomField` of the model, or None


class ClassificationNetwork(ABC):
    """The network of a classifier, in Keras or in an exported file."""

    few_shapes = False  # whether the network is compiled for each shape of its inputs

    @abstractmethod
    def scores(self, inputs: Arrays) -> np.ndarray:
        """The scores of a batch, `(batch, labels)`, or `(batch, 1)` for regression."""


def most_likely_temperature(log_likelihood: Callable[[float], float]) -> float:
    """The temperature from 0.5 to 4 with the highest log likelihood, by golden-section search (Guo et al., 2017)."""
    low, high = math.log(_LOWEST), math.log(_HIGHEST)
    for _ in range(_STEPS):
        lower, upper = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if log_likelihood(math.exp(lower)) > log_likelihood(math.exp(upper)):
            high = upper
        else:
            low = lower
    return round(math.exp((low + high) / 2), 2)

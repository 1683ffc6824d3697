"""The protocols of networks, with which taggers and classifiers compute. Needs NumPy only."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from kcrf.tags import TagScheme

Arrays = Mapping[str, np.ndarray]


class TaggingNetwork(Protocol):
    """The network of a tagger, in Keras, linear or in an exported file.

    Attributes:
        scheme: The `TagScheme`.
        few_shapes: Whether the network is compiled for each shape of its inputs.
    """

    few_shapes: bool

    @property
    def scheme(self) -> TagScheme: ...

    def decode(
        self, inputs: Arrays, allowed: np.ndarray, rows: int, with_scores: bool = True
    ) -> tuple[np.ndarray, Any]:
        """Computes the best paths, and the scores for the other methods.

        Args:
            inputs: A dict of arrays `(batch, time, ...)`.
            allowed: `(batch, time, tags)`, 0 for allowed tags and -inf for forbidden ones.
            rows: The number of rows that are not padding; only these are returned.
            with_scores: Whether the scores are needed. Defaults to True.

        Returns:
            Tags `(rows, time)`, -1 where masked, and the scores.
        """

    def marginals(self, scores: Any) -> np.ndarray:
        """The posterior probability of every tag, `(rows, time, tags)`."""

    def entropies(self, scores: Any) -> np.ndarray:
        """The entropy of the tag sequences of each row in nats, `(rows,)`."""

    def span_probabilities(self, scores: Any, spans: Sequence[Sequence[tuple[Any, ...]]]) -> Sequence[np.ndarray]:
        """For each row an array with the posterior probability of each span. Spans are in positions."""

    def best_paths(self, scores: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k best paths `(rows, k, time)` and their log probabilities `(rows, k)`, -inf where there are fewer."""


class TrainedNetwork(TaggingNetwork, Protocol):
    """The network of a tagger in a run folder, in Keras or linear, which can be calibrated and teach.

    Attributes:
        model: The Keras model, without an optimizer, or the `kcrf.linear.LinearModel`.
        temperature: All scores are divided by it before probabilities are computed.
    """

    model: Any
    temperature: float

    def fit_temperature(self, inputs: Arrays, tags: np.ndarray) -> None:
        """Sets the temperature that maximizes the likelihood of the tags of a validation set.

        Args:
            inputs: A batch of inputs, a dict of arrays `(windows, time, ...)`.
            tags: `(windows, time)`, -1 for unknown tags. With fewer than 1,000 known tags, the temperature is 1.
        """

    def emissions(self, inputs: Arrays) -> np.ndarray:
        """The emission scores of a batch, `(batch, time, tags)`."""

    def as_teacher(self, constraints: TagScheme | None, temperature: float) -> "TrainedNetwork":
        """The network whose scores `expected_counts` takes, with the same constraints and temperature."""

    def expected_counts(self, scores: Any, constraints: TagScheme | None, temperature: float) -> tuple[np.ndarray, ...]:
        """As `ConditionalRandomField.expected_counts`, arrays."""


class KerasNetwork(TrainedNetwork, Protocol):
    """The network of a tagger in Keras, which can also be trained.

    Attributes:
        crf: The `ConditionalRandomField` of the model, or None.
    """

    crf: Any


class ClassificationNetwork(Protocol):
    """The network of a classifier, in Keras or in an exported file.

    Attributes:
        few_shapes: Whether the network is compiled for each shape of its inputs.
    """

    few_shapes: bool

    def scores(self, inputs: Arrays) -> np.ndarray:
        """The scores of a batch, `(batch, labels)`, or `(batch, 1)` for regression."""

"""Exported networks as `Tagger` and `Classifier` use them: arrays in, arrays out. Needs onnxruntime, but no Keras."""

from typing import NamedTuple

import numpy as np

from kcrf.spans import Posterior, span_probabilities
from kcrf.taggers.k_best import best_sequences

__all__ = ["read_classification_network", "read_tagging_network"]


class OnnxTaggingNetwork:
    """What `KerasTaggingNetwork` does, by an exported file, whose temperature is fixed.

    Args:
        file: The `kcrf.runs.exported.ExportedFile`.
        scheme: The `TagScheme`.
        transitions: `(tags, tags)` float64, from which probabilities are computed.
    """

    few_shapes = False

    def __init__(self, file, scheme, transitions):
        self.scheme, self._file, self._transitions = scheme, file, transitions

    def decode(self, inputs, allowed, rows, with_scores=True):
        """As `KerasTaggingNetwork.decode`; the scores are a `Scores`."""
        inputs = {**inputs, "allowed": allowed, "with_confidences": np.array(with_scores)}
        paths, *scores = (array[:rows] for array in self._file.session.run(["tags", *Scores._fields], inputs))
        return paths, Scores(*scores)

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


class Scores(NamedTuple):
    """The outputs of an exported tagger from which probabilities are computed; see `kcrf.spans.Posterior`."""

    marginals: np.ndarray
    onward: np.ndarray


class OnnxClassificationNetwork:
    """What `KerasClassificationNetwork` does, by an exported file."""

    few_shapes = False

    def __init__(self, file):
        self._file = file

    def scores(self, inputs):
        """The scores of a batch, `(batch, labels)`, or `(batch, 1)` for regression."""
        return self._file.session.run(["scores"], inputs)[0]


def read_tagging_network(file, setup):
    """The network of an `ExportedFile` with its `Setup`."""
    scheme = setup.settings.tag_scheme()
    return OnnxTaggingNetwork(file, scheme, file.read_transitions(len(scheme)))


def read_classification_network(file, setup):
    """As `read_tagging_network`, of a run of --task classify."""
    return OnnxClassificationNetwork(file)

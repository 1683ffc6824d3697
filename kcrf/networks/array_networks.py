"""Networks that return posterior probabilities instead of scores: their base, and ONNX files. Needs no Keras."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kcrf.chains import Posterior, best_sequences, span_probabilities
from kcrf.chains.posterior import Spans
from kcrf.networks.network import Arrays, ClassificationNetwork, Decoded, TaggingNetwork
from kcrf.runs.exported import ExportedFile
from kcrf.runs.setup import Setup
from kcrf.tags import TagScheme


class Scores(NamedTuple):
    """The arrays `(rows, time, tags)` from which probabilities are computed; see `kcrf.chains.Posterior`."""

    marginals: np.ndarray
    onward: np.ndarray


class PosteriorNetwork(TaggingNetwork):
    """Computes probabilities and the k best paths from `Scores`."""

    def __init__(self, scheme: TagScheme, transitions: np.ndarray) -> None:
        self.scheme, self._transitions = scheme, transitions

    def marginals(self, scores: Scores) -> np.ndarray:
        return scores.marginals

    def entropies(self, scores: Scores) -> np.ndarray:
        return self._posterior(scores).entropies()

    def span_probabilities(self, scores: Scores, spans: Spans) -> Sequence[np.ndarray]:
        return span_probabilities(self._posterior(scores), self.scheme, spans)

    def best_paths(self, scores: Scores, k: int) -> tuple[np.ndarray, np.ndarray]:
        return best_sequences(self._posterior(scores), k, self.scheme if self.scheme.types else None)

    def _posterior(self, scores: Scores) -> Posterior:
        return Posterior(scores.marginals, scores.onward, self._transitions, scores.marginals.max(axis=-1) > 0)


class OnnxTaggingNetwork(PosteriorNetwork):
    """A network from an exported file, whose temperature is fixed."""

    def __init__(self, file: ExportedFile, scheme: TagScheme, transitions: np.ndarray) -> None:
        super().__init__(scheme, transitions)
        self._file = file

    def decode(self, inputs: Arrays, allowed: np.ndarray, rows: int, with_scores: bool = True) -> Decoded:
        inputs = {**inputs, "allowed": allowed, "with_confidences": np.array(with_scores)}
        paths, *scores = (array[:rows] for array in self._file.session.run(["tags", *Scores._fields], inputs))
        return paths, Scores(*scores)


class OnnxClassificationNetwork(ClassificationNetwork):
    """A network from an exported file."""

    def __init__(self, file: ExportedFile) -> None:
        self._file = file

    def scores(self, inputs: Arrays) -> np.ndarray:
        return self._file.session.run(["scores"], inputs)[0]


def read_network(file: ExportedFile, setup: Setup) -> TaggingNetwork | ClassificationNetwork:
    """The network of an `ExportedFile` with its `Setup`."""
    if setup.config.task.output == "label":
        return OnnxClassificationNetwork(file)
    scheme = setup.config.data.tag_scheme()
    return OnnxTaggingNetwork(file, scheme, file.read_transitions(len(scheme)))

"""The networks of `Tagger` and `Classifier` from ONNX files: arrays in, arrays out. Needs onnxruntime, but no Keras."""

import numpy as np

from kcrf.networks.network import Arrays, ClassificationNetwork, TaggingNetwork
from kcrf.networks.posterior_networks import PosteriorNetwork, Scores
from kcrf.runs.exported import ExportedFile
from kcrf.runs.setup import Setup
from kcrf.tags import TagScheme


class OnnxTaggingNetwork(PosteriorNetwork):
    """A `kcrf.networks.network.TaggingNetwork` from an exported file, whose temperature is fixed.

    Args:
        file: The `kcrf.runs.exported.ExportedFile`.
        scheme: The `TagScheme`.
        transitions: `(tags, tags)` float64, from which probabilities are computed.
    """

    def __init__(self, file: ExportedFile, scheme: TagScheme, transitions: np.ndarray) -> None:
        super().__init__(scheme, transitions)
        self._file = file

    def decode(
        self, inputs: Arrays, allowed: np.ndarray, rows: int, with_scores: bool = True
    ) -> tuple[np.ndarray, Scores]:
        """As `kcrf.networks.network.TaggingNetwork.decode`; the scores are a `Scores`."""
        inputs = {**inputs, "allowed": allowed, "with_confidences": np.array(with_scores)}
        paths, *scores = (array[:rows] for array in self._file.session.run(["tags", *Scores._fields], inputs))
        return paths, Scores(*scores)


class OnnxClassificationNetwork:
    """A `kcrf.networks.network.ClassificationNetwork` from an exported file."""

    few_shapes = False

    def __init__(self, file: ExportedFile) -> None:
        self._file = file

    def scores(self, inputs: Arrays) -> np.ndarray:
        """The scores of a batch, `(batch, labels)`, or `(batch, 1)` for regression."""
        return self._file.session.run(["scores"], inputs)[0]


def read_network(file: ExportedFile, setup: Setup) -> TaggingNetwork | ClassificationNetwork:
    """The network of an `ExportedFile` with its `Setup`."""
    if setup.config.task.output == "label":
        return OnnxClassificationNetwork(file)
    scheme = setup.config.data.tag_scheme()
    return OnnxTaggingNetwork(file, scheme, file.read_transitions(len(scheme)))

"""Exported networks as `Tagger` and `Classifier` use them: arrays in, arrays out. Needs onnxruntime, but no Keras."""

import numpy as np

from kcrf.taggers.posterior_networks import PosteriorNetwork, Scores

__all__ = ["read_network"]


class OnnxTaggingNetwork(PosteriorNetwork):
    """What `KerasTaggingNetwork` does, by an exported file, whose temperature is fixed.

    Args:
        file: The `kcrf.runs.exported.ExportedFile`.
        scheme: The `TagScheme`.
        transitions: `(tags, tags)` float64, from which probabilities are computed.
    """

    def __init__(self, file, scheme, transitions):
        super().__init__(scheme, transitions)
        self._file = file

    def decode(self, inputs, allowed, rows, with_scores=True):
        """As `KerasTaggingNetwork.decode`; the scores are a `Scores`."""
        inputs = {**inputs, "allowed": allowed, "with_confidences": np.array(with_scores)}
        paths, *scores = (array[:rows] for array in self._file.session.run(["tags", *Scores._fields], inputs))
        return paths, Scores(*scores)


class OnnxClassificationNetwork:
    """What `KerasClassificationNetwork` does, by an exported file."""

    few_shapes = False

    def __init__(self, file):
        self._file = file

    def scores(self, inputs):
        """The scores of a batch, `(batch, labels)`, or `(batch, 1)` for regression."""
        return self._file.session.run(["scores"], inputs)[0]


def read_network(file, setup):
    """The network of an `ExportedFile` with its `Setup`."""
    if setup.config.task.output == "label":
        return OnnxClassificationNetwork(file)
    scheme = setup.config.data.tag_scheme()
    return OnnxTaggingNetwork(file, scheme, file.read_transitions(len(scheme)))

"""The networks of taggers and classifiers with Keras models: arrays in, arrays out."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kcrf import crf
from kcrf.backend import COMPILES_SHAPES, JIT_PAYS_FOR_INFERENCE, keras, ops
from kcrf.layers import ConditionalRandomField, ViterbiTags
from kcrf.networks import network
from kcrf.networks.classification import build_classifier
from kcrf.networks.network import Arrays, ClassificationNetwork, Counts, Decoded, KerasNetwork, Spans
from kcrf.networks.tagging import build_network, crf_of, mask_of, output_of_standard
from kcrf.runs import RunFolder
from kcrf.runs.errors import NOT_FINITE, DivergedError
from kcrf.runs.names import WEIGHTS
from kcrf.runs.setup import Setup
from kcrf.tags import TagScheme

_ALLOWED = "allowed"  # an input of the decoder
_ROWS = 64  # of a batch of emissions
_IMPOSSIBLE = crf.FORBIDDEN / 2  # a log likelihood below this: the constraints forbid the tags


class KerasTaggingNetwork(KerasNetwork):
    """A network: a model of emission scores, with its CRF.

    The `scores` of its methods are the emissions of the model.
    """

    few_shapes = COMPILES_SHAPES

    def __init__(self, model: Any, scheme: TagScheme, temperature: float = 1.0) -> None:
        self.scheme, self.temperature, self.crf = scheme, temperature, crf_of(model)
        self.model = keras.Model(model.input, model.output)
        self._crf, emissions = self.crf, model.output
        if self.crf is None:
            self._crf = ConditionalRandomField(transition_initializer="zeros", name="NoTransitions")
            emissions = self._crf(emissions, mask=mask_of(model.input))
        allowed = keras.Input((None, len(scheme)), name=_ALLOWED)  # 0 for allowed tags, -inf for forbidden ones
        emissions = emissions + allowed
        self._constraints = scheme if scheme.types else None
        paths = ViterbiTags(self._crf, constraints=self._constraints)(emissions)
        self._decoder = keras.Model({**model.input, _ALLOWED: allowed}, [emissions, paths])
        self._decoder.compile(jit_compile=JIT_PAYS_FOR_INFERENCE)

    def decode(self, inputs: Arrays, allowed: np.ndarray, rows: int, with_scores: bool = True) -> Decoded:
        emissions, paths = self._decoder.predict_on_batch({**inputs, _ALLOWED: allowed})
        if np.isnan(emissions).any():
            raise DivergedError(NOT_FINITE)
        return paths[:rows], emissions[:rows]

    def marginals(self, scores: np.ndarray) -> np.ndarray:
        return ops.convert_to_numpy(self._crf.marginals(scores, self.temperature))

    def entropies(self, scores: np.ndarray) -> np.ndarray:
        return ops.convert_to_numpy(crf.entropy(self._chain(scores)))

    def span_probabilities(self, scores: np.ndarray, spans: Spans) -> Sequence[np.ndarray]:
        return self._crf.span_confidence(scores, spans, self.scheme, self.temperature)

    def best_paths(self, scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        tags, values = self._crf.top_k(scores, k, self._constraints)
        best = crf.log_likelihood(self._chain(scores), tags[:, 0])  # (rows,)
        tags, values, best = map(ops.convert_to_numpy, (tags, values, best))
        return tags, np.minimum(best[:, None] + (values - values[:, :1]) / self.temperature, 0.0)

    def as_teacher(self, constraints: TagScheme | None, temperature: float) -> "KerasTaggingNetwork":
        return self

    def expected_counts(self, scores: np.ndarray, constraints: TagScheme | None, temperature: float) -> Counts:
        return tuple(map(ops.convert_to_numpy, self._crf.expected_counts(scores, constraints, temperature)))

    def chains(self, scores: np.ndarray) -> tuple[crf.Chain, crf.Chain]:
        """The `kcrf.crf.Chain` for the best path and the one for probabilities."""
        return self._crf.chain(scores).constrained(self._constraints), self._chain(scores)

    def _chain(self, scores: np.ndarray) -> crf.Chain:
        return self._crf.chain(scores).divided(self.temperature)

    def fit_temperature(self, inputs: Arrays, tags: np.ndarray) -> None:
        starts = range(0, len(tags), _ROWS)
        parts = [self.emissions({name: x[i : i + _ROWS] for name, x in inputs.items()}) for i in starts]
        self.temperature = best_temperature(self._crf, np.concatenate(parts), tags)

    def emissions(self, inputs: Arrays) -> np.ndarray:
        return ops.convert_to_numpy(self.model.predict_on_batch(inputs))


def best_temperature(layer: Any, emissions: np.ndarray, tags: np.ndarray) -> float:
    """The temperature from 0.5 to 4 under which tags are most probable."""

    def likelihoods(temperature: float) -> np.ndarray:
        return ops.convert_to_numpy(crf.log_likelihood(layer.chain(emissions).divided(temperature), tags))

    legal = likelihoods(1.0) > _IMPOSSIBLE  # (batch,)
    emissions, tags = emissions[legal], tags[legal]
    if np.sum(tags >= 0) < network.FEWEST_TAGS:
        return 1.0
    return network.most_likely_temperature(lambda temperature: likelihoods(temperature).sum())


class KerasClassificationNetwork(ClassificationNetwork):
    """A network: a model of scores of labels."""

    few_shapes = COMPILES_SHAPES

    def __init__(self, model: Any) -> None:
        self.model = keras.Model(model.input, model.output)
        self.model.compile(jit_compile=JIT_PAYS_FOR_INFERENCE)

    def scores(self, inputs: Arrays) -> np.ndarray:
        return self.model.predict_on_batch(inputs)


def read_network(folder: RunFolder, setup: Setup, standard: str | None = None) -> KerasNetwork | ClassificationNetwork:
    """The network of the run in a `RunFolder` with its `Setup`, or its network for one segmentation standard."""
    config, size = setup.config, folder.existing(WEIGHTS).stat().st_size
    width, depth = config.model.width or 0, config.model.depth or 0
    if config.model.encoder != "none" and depth * width**2 > size:  # before such arrays are allocated
        raise ValueError(f"{folder.path}: needs weights for width {width} and depth {depth}. Received: {size:,} bytes")
    if config.task.output == "label":
        model = build_classifier(config.model, config.data.labels, setup.reader)
        folder.load_weights(model)
        return KerasClassificationNetwork(model)
    scheme = config.data.tag_scheme()
    model = build_network(config.model, scheme, setup.reader, standards=config.data.standards)
    folder.load_weights(model)
    if standard is not None:
        model, config = output_of_standard(model, standard), config.of_standard(standard)
    return KerasTaggingNetwork(model, scheme, config.temperature)

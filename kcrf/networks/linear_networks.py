"""The network of a tagger with a linear model: arrays in, arrays out. Needs NumPy only."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from kcrf.chains import Packing
from kcrf.linear import LinearBatch, LinearModel, log_likelihood
from kcrf.networks import network
from kcrf.networks.array_networks import PosteriorNetwork, Scores
from kcrf.networks.network import Arrays, Counts, Decoded, TaggingNetwork, TrainedNetwork
from kcrf.readers.standards import reader_of_standard
from kcrf.runs import RunConfig, RunFolder
from kcrf.runs.exported import LinearFile
from kcrf.runs.names import LINEAR
from kcrf.runs.setup import Setup
from kcrf.tags import TagScheme


class LinearTaggingNetwork(PosteriorNetwork, TrainedNetwork):
    """A network with a `LinearModel`."""

    def __init__(self, model: LinearModel, temperature: float = 1.0) -> None:
        super().__init__(model.scheme, model.constrained_transitions() / temperature)
        self.model, self._temperature = model, temperature

    @property
    def temperature(self) -> float:  # type: ignore[override]
        return self._temperature

    @temperature.setter
    def temperature(self, value: float) -> None:
        self._temperature, self._transitions = value, self.model.constrained_transitions() / value

    def fit_temperature(self, inputs: Arrays, tags: np.ndarray) -> None:
        if np.sum(tags >= 0) >= network.FEWEST_TAGS:
            masks = inputs["ngrams"][:, :, 0] != 0
            windows = zip(inputs["ngrams"], tags, masks, strict=True)
            batch = LinearBatch.of([(rows[mask], of_window[mask]) for rows, of_window, mask in windows if mask.any()])
            self.temperature = network.most_likely_temperature(partial(log_likelihood, self.model, batch))

    def decode(self, inputs: Arrays, allowed: np.ndarray, rows: int, with_scores: bool = True) -> Decoded:
        features = inputs["ngrams"][:rows]  # (rows, time, width)
        mask = features[:, :, 0] != 0  # (rows, time), padding on the right
        lengths = mask.sum(axis=1)
        packing = Packing.of_lengths(lengths[lengths > 0])
        emissions = self.model.emissions(features[mask]) + allowed[:rows][mask]  # (positions, tags)
        paths = np.full(mask.shape, -1)
        paths[mask] = self.model.best_tags(emissions, packing, self._constraints)
        if not with_scores:
            return paths, None
        scores = Scores(*np.zeros((2, *mask.shape, len(self.scheme))))
        for array, values in zip(scores, self.model.posterior(emissions, packing, self.temperature)):
            array[mask] = values
        return paths, scores

    def as_teacher(self, constraints: TagScheme | None, temperature: float) -> "LinearTaggingNetwork":
        model = LinearModel(self.scheme, self.model.scores, self.model.transitions, constraints is not None)
        return LinearTaggingNetwork(model, temperature)

    def expected_counts(self, scores: Scores, constraints: TagScheme | None, temperature: float) -> Counts:
        after = np.exp(scores.onward - scores.onward.max(axis=-1, keepdims=True))  # (rows, time, tags)
        moves = np.exp(self._transitions - self._transitions.max(axis=1, keepdims=True))  # (tags, tags)
        totals = np.einsum("ij,btj->bti", moves, after[:, 1:])  # sums over the next tags, (rows, time - 1, tags)
        before = scores.marginals[:, :-1] * scores.marginals[:, 1:].any(axis=-1, keepdims=True)
        before = np.divide(before, totals, out=np.zeros_like(totals), where=before > 0)
        return scores.marginals, moves * np.einsum("bti,btj->bij", before, after[:, 1:])

    def emissions(self, inputs: Arrays) -> np.ndarray:
        features = inputs["ngrams"]
        return self.model.emissions(features.reshape(-1, features.shape[2])).reshape(*features.shape[:2], -1)

    @property
    def _constraints(self) -> bool:
        return self.model.constraints or bool(self.scheme.types)


def arrays_of_models(models: Mapping[str | None, LinearModel]) -> dict[str, np.ndarray]:
    """The arrays of the model of each segmentation standard in one dict; under None, of the only one."""
    return {
        name if standard is None else f"{standard}.{name}": array
        for standard, model in models.items()
        for name, array in model.arrays().items()
    }


def read_models(arrays: Mapping[str, np.ndarray], config: RunConfig) -> dict[str | None, LinearModel]:
    """The models that `arrays_of_models` described."""
    scheme, constraints = config.data.tag_scheme(), config.model.constraints
    return {
        standard: LinearModel.from_arrays(_arrays_of_standard(arrays, standard), scheme, constraints)
        for standard in config.data.standards or (None,)
    }


def _arrays_of_standard(arrays: Mapping[str, np.ndarray], standard: str | None) -> dict[str, np.ndarray]:
    prefix = "" if standard is None else f"{standard}."
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def read_network(run: RunFolder | LinearFile, setup: Setup, standard: str | None = None) -> TaggingNetwork:
    """The network of the linear model in a `RunFolder` or `LinearFile`, or its network for one standard."""
    config = setup.config if standard is None else setup.config.of_standard(standard)
    arrays = _arrays_of_standard(run.read_arrays(LINEAR), standard)
    reader: Any = reader_of_standard(setup.reader, standard)  # of characters, with n-gram features
    try:
        model = LinearModel.from_arrays(arrays, config.data.tag_scheme(), config.model.constraints)
    except ValueError as error:
        raise ValueError(f"{run.file(LINEAR)}: {error}") from None
    buckets = len(arrays["scores"])
    if buckets != reader.ngrams.buckets:
        raise ValueError(f"{run.file(LINEAR)}: needs scores of {reader.ngrams.buckets} features. Received: {buckets}")
    return LinearTaggingNetwork(model, config.temperature)

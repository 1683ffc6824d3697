"""The average of a network and a linear model of the same n-gram features, which is again one network.

Both are CRFs: the score of a tag sequence is a sum over its positions and its transitions. So their weighted average, a
logarithmic opinion pool (Smith et al., 2005, https://aclanthology.org/P05-1003), has the layers of the network.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from kcrf.backend import ops
from kcrf.linear import LinearModel
from kcrf.runs import RunConfig, Settings, resolve
from kcrf.training.linear import train_linear_models
from kcrf.training.plan import RunPlan

WEIGHTS = (0.0, 0.5)  # of the linear models: "auto" takes the better one, or the first one if both score the same
MARGIN = 0.02  # linear models alone must score this much higher than the best epoch: else an average is safer


class LinearPart:
    """The linear models of a network, one for each of its heads."""

    def __init__(
        self, models: Mapping[str | None, LinearModel], weights: Sequence[float], may_stand_alone: bool = False
    ) -> None:
        self._models, self.weights, self.may_stand_alone = models, weights, may_stand_alone

    @contextmanager
    def averaged(self, network: Any, weight: float) -> Iterator[None]:
        """A context in which a Keras model computes the average. Afterwards it has its own weights again."""
        variables = [v for standard in self._models for layer in _layers(network, standard) for v in layer.weights]
        own = [np.array(ops.convert_to_numpy(variable)) for variable in variables]
        self.average(network, weight)
        try:
            yield
        finally:
            for variable, value in zip(variables, own, strict=True):
                variable.assign(value)

    def average(self, network: Any, weight: float) -> None:
        """Replaces the scores of the network by their weighted average with the scores of the linear models."""
        for standard, model in self._models.items():
            emissions, ngrams, crf = _layers(network, standard)
            for layer, added in ((emissions, None), (ngrams, model.scores), (crf, model.transitions)):
                for variable in layer.weights:
                    value = (1 - weight) * ops.convert_to_numpy(variable)
                    if added is not None:  # layers store their weights divided by the multiplier
                        value += weight / layer.multiplier * added
                    variable.assign(value.astype("float32"))


def _layers(network: Any, standard: str | None) -> list[Any]:
    """The layers of a head that compute its scores: of the hidden vectors, of the n-grams, and of the transitions."""
    suffix = "" if standard is None else f"-{standard}"
    return [network.get_layer(f"{name}{suffix}") for name in ("Emissions", "NGrams", "CRF")]


def linear_part(plan: RunPlan, windows: Sequence[Any]) -> LinearPart:
    """Trains the linear models of a planned run; none if the network is not averaged with linear models."""
    weight = plan.config.training.linear_weight
    if not weight:
        return LinearPart({}, (0.0,))
    config = _config_of_linear(plan.config, len(plan.windows))
    models = train_linear_models(replace(plan, run=replace(plan.run, config=config)), windows)
    return LinearPart(models, WEIGHTS, True) if isinstance(weight, str) else LinearPart(models, (weight,))


def _config_of_linear(config: RunConfig, windows: int) -> RunConfig:
    """The configuration of a linear model of the same data, with the defaults of `--encoder linear`."""
    settings = Settings(data=config.data, encoder="linear", seed=config.training.seed)
    linear = resolve(settings, replace(config.facts, windows=windows))
    training = replace(linear.training, metric=config.training.metric)
    return replace(config, model=replace(config.model, encoder="linear"), optimizer=linear.optimizer, training=training)

"""Trains the scores of a linear CRF: with L-BFGS for small data, with AdaGrad for large data. Needs NumPy only."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from kcrf.chains import IS_FORBIDDEN, Counts, Packing, counts_of_tags, expected_counts
from kcrf.linear.model import LinearModel, sums_of_rows
from kcrf.linear.quasi_newton import minimize

State = Mapping[str, np.ndarray]
OnStep = Callable[[int, dict[str, float]], object] | None


class SoftTarget(NamedTuple):
    """The target of a window with the predictions of a teacher."""

    tags: np.ndarray  # (positions,), -1 where the tag is unknown
    marginals: np.ndarray  # (positions, tags), the teacher's probabilities of the tags
    steps: np.ndarray  # (tags, tags), how often the teacher expects each transition
    weight: float  # of the teacher's predictions in the loss; 1 minus this is the weight of the tags


@dataclass(frozen=True)
class LinearBatch:
    """Windows in one array, whose features are indices of the buckets that occur in them."""

    packing: Packing
    buckets: np.ndarray  # (features,), the buckets that occur, each once
    features: np.ndarray  # (positions, width) int32, indices of `buckets`
    tags: np.ndarray  # (positions,), -1 where the tag is unknown
    soft: SoftTarget | None = None  # of all windows, with a teacher

    @classmethod
    def of(cls, windows: Sequence[tuple[np.ndarray, Any]]) -> "LinearBatch":
        """The batch of some windows."""
        buckets, features = np.unique(np.concatenate([rows for rows, _ in windows]), return_inverse=True)
        targets, soft = [target for _, target in windows], None
        if isinstance(targets[0], SoftTarget):
            marginals = np.concatenate([target.marginals for target in targets])
            soft = targets[0]._replace(marginals=marginals, steps=sum(target.steps for target in targets))
            targets = [target.tags for target in targets]
        tags = np.concatenate([np.asarray(target, "int64") for target in targets])
        packing = Packing.of_lengths([len(rows) for rows, _ in windows])
        return cls(packing, buckets, features.reshape(len(tags), -1).astype("int32"), tags, soft)

    def with_columns(self, columns: Sequence[int]) -> "LinearBatch":
        """The batch with some of the columns of the features, and with the buckets that occur there."""
        features = self.features[:, columns]
        occurs = np.zeros(len(self.buckets), bool)
        occurs[features] = True
        numbers = np.cumsum(occurs, dtype="int32") - 1  # of the buckets that are left
        return replace(self, buckets=self.buckets[occurs], features=numbers[features])


def linear_batches(windows: Iterable[tuple[np.ndarray, Any]], size: int) -> list[LinearBatch]:
    """Sorts windows by length, omits the empty ones, and makes a `LinearBatch` of each `size` windows."""
    windows = sorted((window for window in windows if len(window[0])), key=lambda window: len(window[0]))
    return [LinearBatch.of(windows[start : start + size]) for start in range(0, len(windows), size)]


class LinearTrainer(ABC):
    """Trains a `LinearModel` batch by batch."""

    model: LinearModel  # at present

    @property
    @abstractmethod
    def state(self) -> State:
        """A dict of the arrays from which `load_state` resumes the training."""

    @abstractmethod
    def load_state(self, state: State) -> None:
        """Resumes from a `state`."""

    @abstractmethod
    def train_batch(self, batch: LinearBatch, on_step: OnStep = None) -> float:
        """Trains on a batch. Returns the negative log likelihood of the windows.

        Calls `on_step` with the number of each step, from 0, and `{"loss": loss of a window}`.
        """


class LBFGSTrainer(LinearTrainer):
    """Trains the scores of a linear CRF with L-BFGS on all windows at once, with the objective of CRFsuite.

    The objective is the negative log likelihood, plus `l1` times the sum of the absolute values of all scores and
    transitions, plus `l2` times the sum of their squares.

    Args:
        model: A `LinearModel`, whose scores and transitions are changed.
        l1, l2: The weights of the penalties. Default to 0.03 each.
        iterations: The maximum number of iterations of `train_batch`. Defaults to 100.
        keep: Whether the penalties apply to the distance from the present scores and transitions, for a model that was
            trained before, instead of the distance from 0. Defaults to False.
    """

    def __init__(
        self, model: LinearModel, l1: float = 0.03, l2: float = 0.03, iterations: int = 100, keep: bool = False
    ) -> None:
        self.model, self.l1, self.l2, self.iterations = model, l1, l2, iterations
        self._origin = (model.scores.copy(), model.transitions.copy()) if keep else None

    @property
    def state(self) -> State:
        return {"scores": self.model.scores, "transitions": self.model.transitions}

    def load_state(self, state: State) -> None:
        self.model.scores[...], self.model.transitions[...] = state["scores"], state["transitions"]

    def train_batch(self, batch: LinearBatch, on_step: OnStep = None) -> float:
        """Trains on all windows of the training set until the objective hardly improves."""
        loss = 0.0

        def objective(values: np.ndarray) -> tuple[float, np.ndarray]:
            nonlocal loss
            self._set(batch, values)
            loss, of_scores, of_steps = loss_and_gradient(self.model, batch)
            gradient = np.concatenate([of_scores.ravel(), of_steps.ravel()])
            return loss + self.l2 * values @ values, gradient + 2 * self.l2 * values

        start = np.concatenate([self.model.scores[batch.buckets].ravel(), self.model.transitions.ravel()])
        start = start - self._origin_of(batch)

        def on_iteration(number: int) -> None:
            if on_step:
                on_step(number, {"loss": loss / len(batch.packing.lengths)})

        best, _ = minimize(objective, start.astype("float64"), self.l1, self.iterations, on_iteration=on_iteration)
        objective(best)
        return loss

    def _set(self, batch: LinearBatch, values: np.ndarray) -> None:
        values = values + self._origin_of(batch)
        scores, transitions = np.split(values, [len(values) - self.model.transitions.size])
        self.model.scores[batch.buckets] = scores.reshape(len(batch.buckets), -1)
        self.model.transitions[...] = transitions.reshape(self.model.transitions.shape)

    def _origin_of(self, batch: LinearBatch) -> np.ndarray | float:
        """The point from which the penalties measure distances: 0, or the initial values, `(values,)`."""
        if self._origin is None:
            return 0.0
        scores, transitions = self._origin
        return np.concatenate([scores[batch.buckets].ravel(), transitions.ravel()])


class AdaGradTrainer(LinearTrainer):
    """Trains the scores of a linear CRF with AdaGrad, a step for each batch.

    Each score has its own learning rate (Duchi et al., 2011, "Adaptive Subgradient Methods"), large for rare features.
    An L1 penalty after each update (Duchi and Singer, 2009, "Forward Backward Splitting") sets most scores to 0.

    Args:
        model: A `LinearModel`, whose scores and transitions are changed.
        learning_rate: The learning rate. Defaults to 0.1.
        l1: The L1 penalty of the scores of a batch. Defaults to 0.01.
        keep: Whether the penalty applies to the distance from the present scores, for a model that was trained before,
            instead of the distance from 0. Defaults to False.
        damping: The number that is added to the root of the sum of squared gradients, by which AdaGrad divides the
            learning rate of a score. Defaults to 0.1.
    """

    def __init__(
        self, model: LinearModel, learning_rate: float = 0.1, l1: float = 0.01, keep: bool = False, damping: float = 0.1
    ) -> None:
        self.model, self.learning_rate, self.l1, self.damping = model, learning_rate, l1, damping
        self._origin = model.scores.copy() if keep else None
        self._squares = np.zeros_like(model.scores)
        self._squared_steps = np.zeros_like(model.transitions)

    @property
    def state(self) -> State:
        rows = np.flatnonzero(self._squares.any(axis=1))  # of the features that occurred; the others have not moved
        of_rows = {"rows": rows, "scores": self.model.scores[rows], "squares": self._squares[rows]}
        return {**of_rows, "transitions": self.model.transitions, "squared_steps": self._squared_steps}

    def load_state(self, state: State) -> None:
        self.model.scores[state["rows"]], self._squares[state["rows"]] = state["scores"], state["squares"]
        self.model.transitions[...], self._squared_steps[...] = state["transitions"], state["squared_steps"]

    def train_batch(self, batch: LinearBatch, on_step: OnStep = None) -> float:
        """Updates the scores in one step. Returns the negative log likelihood before the update."""
        loss, of_scores, of_steps = loss_and_gradient(self.model, batch)
        squares = self._squares[batch.buckets] + of_scores**2
        rates = self.learning_rate / (self.damping + np.sqrt(squares))
        scores = self.model.scores[batch.buckets] - rates * of_scores
        self._squares[batch.buckets] = squares
        origin = 0 if self._origin is None else self._origin[batch.buckets]
        scores -= origin
        self.model.scores[batch.buckets] = origin + np.sign(scores) * np.maximum(np.abs(scores) - self.l1 * rates, 0)
        self._squared_steps += of_steps**2
        self.model.transitions -= self.learning_rate * of_steps / (1 + np.sqrt(self._squared_steps))
        if on_step:
            on_step(0, {"loss": loss / len(batch.packing.lengths)})
        return loss


class PooledTrainer(LinearTrainer):
    """Trains two linear models on the same batches, one with all features and one without some, and averages them.

    Strong features, such as lexicon features, keep the scores of the other features low. Where the strong features are
    missing, the others are too weak (Sutton et al., 2006, "Reducing Weight Undertraining in Structured Discriminative
    Learning"). The average is a logarithmic opinion pool (Smith and Osborne, 2006, "Using Gazetteers ...").
    """

    def __init__(self, trainer: LinearTrainer, other: LinearTrainer, columns: Sequence[int], weight: float) -> None:
        self._trainer, self._other, self._columns, self._weight = trainer, other, columns, weight

    @property
    def model(self) -> LinearModel:  # type: ignore[override]
        """The average of both models at present."""
        return self._trainer.model.averaged(self._other.model, self._weight)

    @property
    def state(self) -> State:
        others = {f"other {name}": array for name, array in self._other.state.items()}
        return {**self._trainer.state, **others}

    def load_state(self, state: State) -> None:
        self._trainer.load_state(state)
        self._other.load_state({name: state[f"other {name}"] for name in self._other.state})

    def train_batch(self, batch: LinearBatch, on_step: OnStep = None) -> float:
        """Trains both models. Returns the loss of the model of all features."""
        self._other.train_batch(batch.with_columns(self._columns))
        return self._trainer.train_batch(batch, on_step)


def loss_and_gradient(model: LinearModel, batch: LinearBatch) -> tuple[float, np.ndarray, np.ndarray]:
    """The negative log likelihood of a batch, and its gradient."""
    counts, gold = _counts(model, batch)
    error = counts.marginals - gold.marginals  # (positions, tags)
    width, flat = batch.features.shape[1], batch.features.ravel()
    sums = np.stack([np.bincount(flat, np.repeat(row, width), len(batch.buckets)) for row in error.T], axis=1)
    sums[batch.buckets == 0] = 0  # bucket 0 stands for no feature
    return counts.log_z.sum() - gold.log_z.sum(), sums.astype("float32"), counts.steps - gold.steps


def log_likelihood(model: LinearModel, batch: LinearBatch, temperature: float = 1.0) -> float:
    """The log likelihood of the tags of a batch, with all scores divided by a temperature."""
    counts, gold = _counts(model, batch, temperature)
    return gold.log_z.sum() - counts.log_z.sum()


def _counts(model: LinearModel, batch: LinearBatch, temperature: float = 1.0) -> tuple[Counts, Counts]:
    """The `Counts` of a batch under a model, and of its targets. The gradient is their difference."""
    transitions = model.constrained_transitions() / temperature
    table = model.scores[batch.buckets] / np.float32(temperature)  # (features, tags)
    emissions = sums_of_rows(table, batch.features).astype("float64")  # (positions, tags)
    model.forbid(emissions, batch.packing)
    counts = expected_counts(emissions, transitions, batch.packing)
    gold, soft = counts_of_tags(batch.tags, emissions, transitions, batch.packing), batch.soft
    if soft is None:
        return counts, gold
    weight = soft.weight
    possible = np.where(emissions > IS_FORBIDDEN, emissions, 0)
    score = (possible * soft.marginals).sum() + (np.maximum(transitions, IS_FORBIDDEN) * soft.steps).sum()
    log_z = np.array((1 - weight) * gold.log_z.sum() + weight * score)  # of all sequences
    marginals = (1 - weight) * gold.marginals + weight * soft.marginals
    return counts, Counts(log_z, marginals, (1 - weight) * gold.steps + weight * soft.steps)

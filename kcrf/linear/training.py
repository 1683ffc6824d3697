"""Trains the scores of a linear CRF: to convergence with L-BFGS, or in steps with AdaGrad. Needs NumPy only.

L-BFGS reads all windows in each iteration, and converges in about a hundred iterations. It is best for small data.
AdaGrad updates only the scores of the features in a batch, and is fastest for large data. Each score has its own
learning rate (Duchi et al., 2011, "Adaptive Subgradient Methods"), which is large for rare features. An L1 penalty,
applied after each update (Duchi and Singer, 2009, "Forward Backward Splitting"), sets the scores of most features to 0.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kcrf.linear.chain import Counts, expected_counts
from kcrf.linear.model import FORBIDDEN
from kcrf.linear.packing import Packing
from kcrf.linear.quasi_newton import minimize


class SoftTarget(NamedTuple):
    """The target of a window with the predictions of a teacher.

    Attributes:
        tags: `(positions,)`, -1 where the tag is unknown.
        marginals: `(positions, tags)`, those of the teacher.
        steps: `(tags, tags)`, how often the teacher expects each transition.
        weight: The weight of the teacher's predictions in the loss. The weight of the tags is 1 minus this.
    """

    tags: np.ndarray
    marginals: np.ndarray
    steps: np.ndarray
    weight: float


@dataclass(frozen=True)
class LinearBatch:
    """Packed windows, whose features are indices of the buckets that occur in them.

    Attributes:
        packing: The `Packing` of the windows.
        buckets: `(features,)`, the buckets that occur, each once.
        features: `(positions, width)` int32, packed, indices of `buckets`.
        tags: `(positions,)`, packed, -1 where the tag is unknown.
        soft: The `SoftTarget` of all windows, packed, or None without a teacher.
    """

    packing: Packing
    buckets: np.ndarray
    features: np.ndarray
    tags: np.ndarray
    soft: SoftTarget | None = None

    @classmethod
    def of(cls, windows):
        """The batch of some windows.

        Args:
            windows: A list of `(features, target)`: buckets `(positions, width)`, and tags `(positions,)` or a
                `SoftTarget`.
        """
        lengths = [len(features) for features, _ in windows]
        packing = Packing(np.cumsum([0, *lengths[:-1]]), lengths)
        packed = np.concatenate([features for features, _ in windows])[packing.index]
        buckets, features = np.unique(packed, return_inverse=True)
        targets, soft = [target for _, target in windows], None
        if isinstance(targets[0], SoftTarget):
            marginals = np.concatenate([target.marginals for target in targets])[packing.index]
            steps = sum(target.steps for target in targets)
            soft = targets[0]._replace(marginals=marginals, steps=steps)
            targets = [target.tags for target in targets]
        tags = np.concatenate([np.asarray(target, "int64") for target in targets])[packing.index]
        return cls(packing, buckets, features.reshape(packed.shape).astype("int32"), tags, soft)

    def with_columns(self, columns):
        """The batch with some of the columns of the features, a list of ints, and with the buckets that occur there."""
        features = self.features[:, columns]
        occurs = np.zeros(len(self.buckets), bool)
        occurs[features] = True
        numbers = np.cumsum(occurs, dtype="int32") - 1  # of the buckets that are left
        return replace(self, buckets=self.buckets[occurs], features=numbers[features])


def linear_batches(windows, size):
    """Sorts windows by length, omits the empty ones, and makes a `LinearBatch` of each `size` windows."""
    windows = sorted((window for window in windows if len(window[0])), key=lambda window: len(window[0]))
    return [LinearBatch.of(windows[start : start + size]) for start in range(0, len(windows), size)]


class LBFGSTrainer:
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

    def __init__(self, model, l1=0.03, l2=0.03, iterations=100, keep=False):
        self.model, self.l1, self.l2, self.iterations = model, l1, l2, iterations
        self._origin = (model.scores.copy(), model.transitions.copy()) if keep else None

    @property
    def state(self):
        """A dict of the arrays from which `load_state` resumes the training."""
        return {"scores": self.model.scores, "transitions": self.model.transitions}

    def load_state(self, state):
        """Resumes from a `state`."""
        self.model.scores[...], self.model.transitions[...] = state["scores"], state["transitions"]

    def train_batch(self, batch, on_step=None):
        """Trains until the objective hardly improves.

        Args:
            batch: A `LinearBatch` with all windows of the training set.
            on_step: Called with the number of each iteration, from 0. Defaults to None.

        Returns:
            The negative log likelihood of the windows, a float.
        """
        loss = 0.0

        def objective(values):
            nonlocal loss
            self._set(batch, values)
            loss, of_scores, of_steps = loss_and_gradient(self.model, batch)
            gradient = np.concatenate([of_scores.ravel(), of_steps.ravel()])
            return loss + self.l2 * values @ values, gradient + 2 * self.l2 * values

        start = np.concatenate([self.model.scores[batch.buckets].ravel(), self.model.transitions.ravel()])
        start = start - self._origin_of(batch)
        on_iteration = on_step and (lambda number, _: on_step(number))
        best, _ = minimize(objective, start.astype("float64"), self.l1, self.iterations, on_iteration=on_iteration)
        objective(best)
        return loss

    def _set(self, batch, values):
        """Sets the scores of the features of a batch, and the transitions, by their distances from the origin."""
        values = values + self._origin_of(batch)
        scores, transitions = np.split(values, [len(values) - self.model.transitions.size])
        self.model.scores[batch.buckets] = scores.reshape(len(batch.buckets), -1)
        self.model.transitions[...] = transitions.reshape(self.model.transitions.shape)

    def _origin_of(self, batch):
        """The point from which the penalties measure distances: 0, or the initial values, `(values,)`."""
        if self._origin is None:
            return 0.0
        scores, transitions = self._origin
        return np.concatenate([scores[batch.buckets].ravel(), transitions.ravel()])


class AdaGradTrainer:
    """Trains the scores of a linear CRF with AdaGrad, a step for each batch.

    Args:
        model: A `LinearModel`, whose scores and transitions are changed.
        learning_rate: The learning rate. Defaults to 0.1.
        l1: The L1 penalty of the scores of a batch. Defaults to 0.01.
        keep: Whether the penalty applies to the distance from the present scores, for a model that was trained before,
            instead of the distance from 0. Defaults to False.
        damping: The number that is added to the root of the sum of squared gradients, by which AdaGrad divides the
            learning rate of a score. Defaults to 0.1.
    """

    def __init__(self, model, learning_rate=0.1, l1=0.01, keep=False, damping=0.1):
        self.model, self.learning_rate, self.l1, self.damping = model, learning_rate, l1, damping
        self._origin = model.scores.copy() if keep else None
        self._squares = np.zeros_like(model.scores)
        self._squared_steps = np.zeros_like(model.transitions)

    @property
    def state(self):
        """A dict of the arrays from which `load_state` resumes the training."""
        rows = np.flatnonzero(self._squares.any(axis=1))  # of the features that occurred; the others have not moved
        of_rows = {"rows": rows, "scores": self.model.scores[rows], "squares": self._squares[rows]}
        return {**of_rows, "transitions": self.model.transitions, "squared_steps": self._squared_steps}

    def load_state(self, state):
        """Resumes from a `state`."""
        self.model.scores[state["rows"]], self._squares[state["rows"]] = state["scores"], state["squares"]
        self.model.transitions[...], self._squared_steps[...] = state["transitions"], state["squared_steps"]

    def train_batch(self, batch, on_step=None):
        """Updates the scores; returns the negative log likelihood of the batch before the update, a float."""
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
            on_step(0)
        return loss


def loss_and_gradient(model, batch):
    """The negative log likelihood of a batch, and its gradient.

    Args:
        model: A `LinearModel`.
        batch: A `LinearBatch`.

    Returns:
        `(loss, score_gradient, transition_gradient)`: a float, `(features, tags)` float32 and `(tags, tags)`.
    """
    counts, gold = _counts(model, batch)
    width, flat = batch.features.shape[1], batch.features.ravel()
    error = counts.marginals - gold.marginals  # (tags, positions)
    sums = np.stack([np.bincount(flat, np.repeat(row, width), len(batch.buckets)) for row in error], axis=1)
    sums[batch.buckets == 0] = 0  # bucket 0 stands for no feature
    return counts.log_z - gold.log_z, sums.astype("float32"), counts.steps - gold.steps


def log_likelihood(model, batch, temperature=1.0):
    """The log likelihood of the tags of a batch, a float, with all scores divided by a temperature."""
    counts, gold = _counts(model, batch, temperature)
    return gold.log_z - counts.log_z


def _counts(model, batch, temperature=1.0):
    """The `Counts` of a batch under a model, and those of its targets. The gradient is their difference."""
    transitions = model.constrained_transitions() / temperature
    table = model.scores[batch.buckets] / np.float32(temperature)  # (features, tags)
    emissions = sum(table[column] for column in batch.features.T).T.astype("float64")  # (tags, positions)
    model.forbid(emissions, batch.packing)
    counts = expected_counts(emissions, transitions, batch.packing.steps)
    gold, soft = _counts_of_tags(batch, emissions, transitions), batch.soft
    if soft is None:
        return counts, gold
    marginals, weight = soft.marginals.T, soft.weight
    possible = np.where(emissions > FORBIDDEN / 2, emissions, 0)
    soft_score = (possible * marginals).sum() + (np.maximum(transitions, FORBIDDEN / 2) * soft.steps).sum()
    pairs = zip(gold[:3], (soft_score, marginals, soft.steps), strict=True)
    return counts, Counts(*((1 - weight) * hard + weight * taught for hard, taught in pairs), None)


def _counts_of_tags(batch, emissions, transitions):
    """The `Counts` of a batch given its tags. Unknown tags are marginalized out."""
    is_tag = np.arange(len(emissions))[:, None] == batch.tags  # (tags, positions)
    if (batch.tags < 0).any():
        clamped = np.where(is_tag | (batch.tags < 0), emissions, FORBIDDEN)
        return expected_counts(clamped, transitions, batch.packing.steps)
    steps = np.zeros(transitions.shape)
    np.add.at(steps, (batch.tags[batch.packing.before], batch.tags[batch.packing.after]), 1)
    log_z = emissions[is_tag].sum() + (steps * transitions).sum()
    return Counts(log_z, is_tag, steps, None)

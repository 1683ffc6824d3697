"""Trains the scores of a linear CRF with AdaGrad, which visits only the features of a batch. Needs NumPy only.

Each score has a learning rate of its own (Duchi et al., 2011, "Adaptive Subgradient Methods"): rare features move far.
An L1 penalty, applied after each update (Duchi and Singer, 2009, "Forward Backward Splitting"), sets the scores of
features that do not matter to 0.
"""

from dataclasses import dataclass

import numpy as np

from kcrf.linear.chain import Counts, expected_counts
from kcrf.linear.model import FORBIDDEN
from kcrf.linear.packing import Packing

__all__ = ["LinearBatch", "LinearTrainer", "linear_batches"]

_DAMPING = 0.1  # of the rates of scores, 1 for those of transitions


@dataclass(frozen=True)
class LinearBatch:
    """Windows of similar length, packed, whose features are numbered anew: 0, 1, ... in place of buckets.

    Attributes:
        packing: The `Packing` of the windows.
        buckets: `(features,)`, the different buckets.
        features: `(positions, width)`, packed, numbers of `buckets`.
        tags: `(positions,)`, packed, -1 where the tag is unknown.
    """

    packing: Packing
    buckets: np.ndarray
    features: np.ndarray
    tags: np.ndarray

    @classmethod
    def of(cls, windows):
        """The batch of a list of `(features (positions, width), tags)`."""
        lengths = [len(rows) for rows, _ in windows]
        packing = Packing(np.cumsum([0, *lengths[:-1]]), lengths)
        rows = np.concatenate([rows for rows, _ in windows])[packing.index]
        buckets, features = np.unique(rows, return_inverse=True)
        tags = np.concatenate([np.asarray(tags, "int64") for _, tags in windows])[packing.index]
        return cls(packing, buckets, features.reshape(rows.shape).astype("int32"), tags)


def linear_batches(windows, size):
    """The `LinearBatch`es of windows, each of `size` windows of similar length; what is empty is left out."""
    windows = sorted((window for window in windows if len(window[0])), key=lambda window: len(window[0]))
    return [LinearBatch.of(windows[start : start + size]) for start in range(0, len(windows), size)]


class LinearTrainer:
    """The scores of a linear CRF while they are trained.

    Args:
        model: A `LinearModel`, whose scores and transitions are changed.
        learning_rate: Defaults to 0.1.
        l1: The penalty of each score for each batch that it occurs in. Defaults to 0.01.

    Attributes:
        state: A dict of arrays, what `load_state` needs to go on.
    """

    def __init__(self, model, learning_rate=0.1, l1=0.01):
        self.model, self.learning_rate, self.l1 = model, learning_rate, l1
        self._squares = np.zeros_like(model.scores)
        self._squared_steps = np.zeros_like(model.transitions)

    @property
    def state(self):
        """What training needs to be resumed, a dict of arrays."""
        arrays = (self.model.scores, self.model.transitions, self._squares, self._squared_steps)
        return dict(zip(("scores", "transitions", "squares", "squared_steps"), arrays, strict=True))

    def load_state(self, state):
        """Goes on from a `state`."""
        for name, array in self.state.items():
            array[...] = state[name]

    def train_batch(self, batch):
        """Moves the scores against the gradient of a batch; returns its loss, the sum over its windows."""
        loss, of_scores, of_steps = self.gradient(batch)
        squares = self._squares[batch.buckets] + of_scores**2
        rates = self.learning_rate / (_DAMPING + np.sqrt(squares))
        scores = self.model.scores[batch.buckets] - rates * of_scores
        self._squares[batch.buckets] = squares
        self.model.scores[batch.buckets] = np.sign(scores) * np.maximum(np.abs(scores) - self.l1 * rates, 0)
        self._squared_steps += of_steps**2
        self.model.transitions -= self.learning_rate * of_steps / (1 + np.sqrt(self._squared_steps))
        self.model.scores[0] = 0  # no feature
        return loss

    def gradient(self, batch):
        """The negative log likelihood of a batch and its gradient.

        Returns:
            `(loss, gradient of the scores (features, tags), gradient of the transitions (tags, tags))`.
        """
        packing, transitions = batch.packing, self.model.constrained_transitions()
        table = self.model.scores[batch.buckets]  # (features, tags)
        emissions = sum(table[column] for column in batch.features.T).T.astype("float64")  # (tags, positions)
        self.model.forbid(emissions, packing)
        counts = expected_counts(emissions, transitions, packing.steps)
        gold = _counts_of_tags(batch, emissions, transitions)
        error = counts.marginals - gold.marginals  # (tags, positions)
        width, flat = batch.features.shape[1], batch.features.ravel()
        sums = [np.bincount(flat, np.repeat(row, width), len(batch.buckets)) for row in error]
        return counts.log_z - gold.log_z, np.stack(sums, axis=1).astype("float32"), counts.steps - gold.steps


def _counts_of_tags(batch, emissions, transitions):
    """The `Counts` of a batch if its tags are given; unknown ones are summed over."""
    is_tag = np.arange(len(emissions))[:, None] == batch.tags  # (tags, positions)
    if (batch.tags < 0).any():
        clamped = np.where(is_tag | (batch.tags < 0), emissions, FORBIDDEN)
        return expected_counts(clamped, transitions, batch.packing.steps)
    steps = np.zeros(transitions.shape)
    np.add.at(steps, (batch.tags[batch.packing.before], batch.tags[batch.packing.after]), 1)
    log_z = emissions[is_tag].sum() + (steps * transitions).sum()
    return Counts(log_z, is_tag, steps, None)

"""How scores grow with the number of training sentences: a power law, and the sentences that a score needs."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

WIDTH = 1.96  # standard deviations on either side of an interval of 95 %
USUAL, SPREAD = 0.6, 0.2  # of the power: about 0.35 for words and 0.7 for entities in experiments/curve.json
_LOWEST, _HIGHEST = 0.02, 0.9995  # of a mean score in a fit
_GOALS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99, 0.995)
_STEP = 0.01  # by which the next goal is at least above the present score
_MOST = 1000  # times as many sentences are considered at most


class Range(NamedTuple):
    """A number with its interval of 95 %."""

    value: float
    low: float
    high: float


class PowerLaw:
    """The odds of an error, `(1 - score) / score`, fall with a power of the number of training sentences.

    Where errors are rare, this is the power law of learning curves (Hestness et al., 2017,
    https://arxiv.org/abs/1712.00409). The power is estimated from `scores`, `(draws, sizes)`, with a row for each draw
    of training sentences, and from its usual value, which decides where scores vary much by chance.

    >>> law = PowerLaw([100, 200, 400], [[1 / 2, 2 / 3, 4 / 5]] * 2)
    >>> [round(number, 3) for number in law.score(800)], round(law.size(0.95).value, -2)
    ([0.889, 0.889, 0.889], 1900.0)
    """

    def __init__(self, sizes: Sequence[int], scores: ArrayLike) -> None:
        self.sizes, self.scores, rows = list(sizes), np.asarray(scores, float), _rows(sizes)
        means = self.scores.mean(axis=0).clip(_LOWEST, _HIGHEST)  # (sizes,)
        scale = means * (1 - means)  # the variance of a score is proportional to it
        # of one draw, since draws share their sentences: the mean of three varies hardly less
        chance = (self.scores.var(axis=0, ddof=1) / scale).mean() if len(self.scores) > 1 else 0.0
        weights, prior = scale / max(chance, 1e-12), np.array([0.0, SPREAD**-2])  # inverse variances of log odds
        self._covariance = np.linalg.inv((rows.T * weights) @ rows + np.diag(prior))
        self._line = self._covariance @ (rows.T @ (weights * np.log(1 / means - 1)) - USUAL * prior)

    def score(self, size: float) -> Range:
        """The expected score with a number of sentences."""
        return Range(*self._ranges([size])[0].tolist())

    def _ranges(self, sizes: ArrayLike) -> np.ndarray:
        """The scores with their intervals, `(sizes, 3)`."""
        rows = _rows(sizes)
        odds, width = rows @ self._line, WIDTH * np.sqrt(((rows @ self._covariance) * rows).sum(axis=1))
        return 1 / (1 + np.exp(np.stack([odds, odds + width, odds - width], axis=1)))

    def size(self, score: float) -> Range | None:
        """How many sentences a score needs, from the largest size on; infinity out of reach, None if the value is."""
        sizes = max(self.sizes) * np.geomspace(1, _MOST, 2000)
        reached = self._ranges(sizes) >= score  # (sizes, 3)
        value, latest, earliest = np.where(reached.any(axis=0), sizes[reached.argmax(axis=0)], np.inf).tolist()
        return None if value == np.inf else Range(value, earliest, latest)


class LearningCurve(PowerLaw):
    """The law of the scores of a task, with their key `metric`, on growing parts of all `count` labeled sentences."""

    def __init__(self, metric: str, count: int, sizes: Sequence[int], scores: ArrayLike) -> None:
        super().__init__(sizes, scores)
        self.metric, self.count = metric, count

    def needs(self, goal: float | None = None) -> str:
        """How many more sentences a score needs, for people; by default the next round score."""
        least = self.score(self.count).value + _STEP
        goal = goal or next((goal for goal in _GOALS if goal >= least), _GOALS[-1])
        if (needed := self.size(goal)) is None:
            return f"{goal:g} is out of reach of sentences like these"
        more = [float(f"{max(0.0, size - self.count):.2g}") for size in needed]  # two digits count
        if not any(more):
            return f"{goal:g} is reached"
        value, low, high = (f"{number:,.0f}" for number in more)
        until = "or more" if needed.high == np.inf else f"to {high}"
        return f"about {goal:g} with {value} more ({low} {until})"


def _rows(sizes: ArrayLike) -> np.ndarray:
    return np.vander(np.log(sizes), 2, increasing=True)  # 1 and the logarithm of each size

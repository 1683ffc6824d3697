"""How scores grow with the number of training sentences: a power law, and the sentences that a score needs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

WIDTH = 1.96  # standard deviations on either side of an interval of 95 %
USUAL, SPREAD = 0.6, 0.2  # of the power: about 0.35 for words and 0.7 for entities in experiments/curve.json
_LOWEST, _HIGHEST = 0.02, 0.9995  # of a mean score in a fit
_LEAST = 1e-12  # of the variance by chance
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
    https://arxiv.org/abs/1712.00409); where they are frequent, scores below 0.5 grow with a power of the sentences.

    The power is estimated from the scores and from its usual value, which decides where scores vary much by chance.

    Args:
        sizes: The numbers of sentences, at least two different ones.
        scores: Scores from 0 to 1, `(draws, sizes)`, each row from other training sentences.

    >>> law = PowerLaw([100, 200, 400], [[1 / 2, 2 / 3, 4 / 5]] * 2)
    >>> [round(number, 3) for number in law.score(800)], round(law.size(0.95).value, -2)
    ([0.889, 0.889, 0.889], 1900.0)
    """

    def __init__(self, sizes: Sequence[int], scores: ArrayLike) -> None:
        given = np.asarray(scores, float)  # (draws, sizes)
        means, rows = given.mean(axis=0).clip(_LOWEST, _HIGHEST), _rows(sizes)
        scale = means * (1 - means)  # (sizes,): the variance of a score is proportional to it
        # of one draw, since draws share their sentences: the mean of three varies hardly less
        chance = (given.var(axis=0, ddof=1) / scale).mean() if len(given) > 1 else 0.0
        weights, prior = scale / max(chance, _LEAST), np.array([0.0, SPREAD**-2])  # inverse variances of log odds
        self._covariance = np.linalg.inv((rows.T * weights) @ rows + np.diag(prior))
        self._line = self._covariance @ (rows.T @ (weights * np.log(1 / means - 1)) - USUAL * prior)
        self._largest = max(sizes)

    def score(self, size: float) -> Range:
        """The expected score with a number of sentences."""
        return Range(*self._scores([size])[0].tolist())

    def _scores(self, sizes: ArrayLike) -> np.ndarray:
        """The scores with their intervals, `(sizes, 3)`."""
        rows = _rows(sizes)
        odds, width = rows @ self._line, WIDTH * np.sqrt(((rows @ self._covariance) * rows).sum(axis=1))
        return 1 / (1 + np.exp(np.stack([odds, odds + width, odds - width], axis=1)))

    def size(self, score: float) -> Range | None:
        """How many sentences a score needs, from the largest size on; infinity where it is not reached.

        None if no number of sentences within reach is expected to have this score.
        """
        sizes = self._largest * np.geomspace(1, _MOST, 2000)
        reached = self._scores(sizes) >= score  # (sizes, 3)
        value, latest, earliest = (float(sizes[column.argmax()]) if column.any() else np.inf for column in reached.T)
        return None if value == np.inf else Range(value, earliest, latest)


@dataclass(frozen=True)
class LearningCurve:
    """Scores by the number of sentences, and their `PowerLaw`."""

    metric: str  # a key of the scores of the task
    count: int  # of all labeled sentences
    sizes: list[int]
    scores: np.ndarray  # (draws, sizes)

    @cached_property
    def law(self) -> PowerLaw:
        """The power law of the scores."""
        return PowerLaw(self.sizes, self.scores)

    def next_goal(self) -> float:
        """The next round score."""
        now = self.law.score(self.count).value
        return next((goal for goal in _GOALS if goal >= now + _STEP), _GOALS[-1])

    def needs(self, goal: float) -> str:
        """How many more sentences a score needs, for people."""
        needed = self.law.size(goal)
        if needed is None:
            return f"{goal:g} is out of reach of sentences like these"
        value, low, high = (max(0.0, size - self.count) for size in needed)
        until = "or more" if high == float("inf") else f"to {_rounded(high)}"
        return f"about {goal:g} with {_rounded(value)} more ({_rounded(low)} {until})"


def _rounded(number: float) -> str:
    """A number of sentences with two digits that count."""
    return f"{int(float(f'{number:.2g}')):,}"


def _rows(sizes: ArrayLike) -> np.ndarray:
    return np.vander(np.log(sizes), 2, increasing=True)  # 1 and the logarithm of each size

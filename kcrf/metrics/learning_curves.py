"""How scores grow with the number of training sentences: a power law, and the sentences that a score needs."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

WIDTH = 1.96  # standard deviations on either side of an interval of 95 %
_LOWEST, _HIGHEST = 0.02, 0.9995  # of a score in a fit: one draw that finds nothing must not decide
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

    Args:
        sizes: The numbers of sentences, at least two different ones.
        scores: Scores from 0 to 1, `(draws, sizes)`, each row from other training sentences.

    >>> law = PowerLaw([100, 200, 400], [[1 / 2, 2 / 3, 4 / 5]])
    >>> [round(number, 3) for number in law.score(800)], round(law.size(0.95).value, -2)
    ([0.889, 0.889, 0.889], 1900.0)
    """

    def __init__(self, sizes: Sequence[int], scores: ArrayLike) -> None:
        kept = np.clip(np.asarray(scores, float), _LOWEST, _HIGHEST)  # (draws, sizes)
        if kept.ndim != 2 or kept.shape[1] != len(sizes) or len(set(sizes)) < 2:
            raise ValueError(
                "`PowerLaw` needs two sizes or more, and a score of each in each draw. Received: scores of shape "
                f"{kept.shape}, sizes {list(sizes)}"
            )
        means = kept.mean(axis=0)
        weights = np.sqrt(means * (1 - means))  # the odds of scores near 0 and 1 vary most
        rows = weights[:, None] * _rows(np.asarray(sizes, float))  # (sizes, 2)
        odds = weights * np.log(1 / kept - 1)  # (draws, sizes)
        self._lines = np.linalg.lstsq(rows, odds.T, rcond=None)[0]  # (2, draws)
        self._line, free = self._lines.mean(axis=1), odds.size - 2
        self._noise = ((odds - rows @ self._line) ** 2).sum() / free if free else 0.0
        self._inverse = np.linalg.inv(rows.T @ rows) / len(kept)
        self._largest = max(sizes)

    def score(self, size: float) -> Range:
        """The expected score with a number of sentences."""
        row = _rows(np.array([size]))  # (1, 2)
        (odds,), lines = row @ self._line, (row @ self._lines)[0]
        between = lines.var(ddof=1) / len(lines) if len(lines) > 1 else 0.0
        width = WIDTH * np.sqrt(between + (row @ self._inverse @ row.T).item() * self._noise)
        return Range(*(float(1 / (1 + np.exp(value))) for value in (odds, odds + width, odds - width)))

    def size(self, score: float) -> Range | None:
        """How many sentences a score needs, from the largest size on; infinity where it is not reached.

        None if no number of sentences within reach is expected to have this score.
        """
        sizes = self._largest * np.geomspace(1, _MOST, 2000)
        reached = np.array([self.score(size) for size in sizes]) >= score  # (sizes, 3)
        value, latest, earliest = (float(sizes[column.argmax()]) if column.any() else np.inf for column in reached.T)
        return None if value == np.inf else Range(value, earliest, latest)


def _rows(sizes: np.ndarray) -> np.ndarray:
    return np.stack([np.ones(len(sizes)), np.log(sizes)], axis=1)

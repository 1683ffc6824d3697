"""Paired comparisons of measured runs, and what they say about a claim. Needs no Keras."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

HOLDS, OPPOSITE, NO_EFFECT, UNDECIDED = VERDICTS = ("holds", "opposite", "no effect", "undecided")
Measures = Mapping[str, Any]
IntervalOf = Callable[[Sequence[float]], tuple[float, float, float]]
# The 97.5 % quantiles of Student's t distribution with 1, 2, ... degrees of freedom.
QUANTILES = (12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
             2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930)  # fmt: skip


def paired_interval(differences: Sequence[float]) -> tuple[float, float, float]:
    """The mean of paired differences and its 95 % interval by Student's t, for 1 to 20 pairs.

    One pair has no interval: its ends are infinite.

    >>> [round(value, 3) for value in paired_interval([0.01, 0.02, 0.03])]
    [0.02, -0.005, 0.045]
    """
    mean, n = float(np.mean(differences)), len(differences)
    if n == 1:
        return mean, -math.inf, math.inf
    half = QUANTILES[n - 2] * float(np.std(differences, ddof=1)) / math.sqrt(n)
    return mean, mean - half, mean + half


def bootstrap_interval(differences: Sequence[float]) -> tuple[float, float, float]:
    """The mean of paired differences and its 95 % percentile interval over 10,000 samples with replacement.

    >>> [round(value, 3) for value in bootstrap_interval([0.01, 0.02, 0.03])]
    [0.02, 0.01, 0.03]
    """
    drawn = np.random.default_rng(0).choice(differences, (10_000, len(differences))).mean(axis=1)
    return float(np.mean(differences)), *(float(end) for end in np.quantile(drawn, (0.025, 0.975)))


def measure(name: str, second: str | None = None) -> Callable[[Measures, Measures], tuple[float, float]]:
    """A function that takes this number from the measures of both runs, or another number from the second run."""
    return lambda one, other: (float(one[name]), float(other[second or name]))


def epochs_to_loss(one: Measures, other: Measures) -> tuple[float, float]:
    """The fraction of the epochs after which the first run has the last loss of the second run, and 1.

    If the first run never gets there, it counts as 1 epoch late.
    """
    last = other["losses"][-1]
    reached = next((i for i, loss in enumerate(one["losses"]) if loss <= last), len(one["losses"]))
    return (reached + 1) / len(other["losses"]), 1.0


def epochs_to_score(one: Measures, other: Measures) -> tuple[float, float]:
    """The epochs of the first run to the best validation score of the second run, over those of the second, and 1.

    If the first run never gets there, it counts as 1 epoch late.
    """
    best = int(np.argmax(other["valid"]))
    reached = next((i for i, score in enumerate(one["valid"]) if score >= other["valid"][best]), len(one["valid"]))
    return (reached + 1) / (best + 1), 1.0


@dataclass(frozen=True)
class Outcome:
    """The measured numbers of a comparison: one pair for each seed."""

    first: tuple[float, ...]
    second: tuple[float, ...]
    arm: str

    @property
    def n(self) -> int:
        """The number of seeds."""
        return len(self.first)

    def interval(self) -> tuple[float, float, float]:
        """The mean difference with its 95 % interval, for at least one seed."""
        return paired_interval(np.subtract(self.first, self.second))


@dataclass(frozen=True)
class Comparison:
    """Whether the first arm is higher than, lower than or the same as the second one, paired by seed.

    With the margin m, the mean difference d (its sign changed if "lower" is claimed) and its 95 % interval:

    - "no effect": the interval is within m of 0 on both sides. If "same" is claimed, this is "holds".
    - "higher", "lower": "holds" if d >= m and the interval is above 0; "opposite" if d <= -m and it is below 0.
    - "same": "opposite" if d is m or more from 0 and the interval omits 0.
    - "not lower": "holds" if the interval is above -m; "opposite" if it is below -m.
    - Otherwise "undecided"; with fewer seeds than the claim asks for, "undecided yet".

    If the source says nothing about a comparison, nothing is claimed, and the verdict is the direction: "higher",
    "lower", "no effect" or "undecided".

    Attributes:
        first: The name of an arm.
        second: The name of another arm; of several arms, the one with the highest mean counts, over the seeds that all
            of them have.
        claimed: "higher", "lower", "not lower" or "same"; or "" if the source says nothing about these arms and cells.
        margin: The smallest difference that matters.
        cells: The cells over which a seed is averaged.
        what: The measure in words.
        numbers: A function of the measures of both runs that returns the two numbers to compare.
        seeds: How many seeds decide, if fewer than those of the claim.
    """

    first: str
    second: str | tuple[str, ...]
    claimed: str
    margin: float
    cells: tuple[str, ...] = ("",)
    what: str = "score"
    numbers: Callable[[Measures, Measures], tuple[float, float]] = measure("score")
    seeds: int | None = None

    def outcome(self, results: Mapping[str, Measures], seeds: int) -> Outcome | None:
        """The outcome, from the measures of the runs by key, or None if no seed has all of its cells."""
        arms = (self.second,) if isinstance(self.second, str) else self.second
        complete = [seed for seed in range(seeds) if self._has(results, seed, (self.first, *arms))]
        if not complete:
            return None
        outcomes = [self._against(arm, results, complete) for arm in arms]
        return max(outcomes, key=lambda outcome: np.mean(outcome.second))

    def _has(self, results, seed, arms):
        """Whether all arms are measured with a seed."""
        return all(_key(cell, arm, seed) in results for cell in self.cells for arm in arms)

    def _against(self, arm, results, seeds):
        pairs = []
        for seed in seeds:
            keys = [tuple(_key(cell, name, seed) for name in (self.first, arm)) for cell in self.cells]
            numbers = [self.numbers(results[one], results[other]) for one, other in keys]
            pairs.append(np.mean(numbers, axis=0).tolist())
        first, second = zip(*pairs)
        return Outcome(first, second, arm)

    def verdict(self, outcome: Outcome | None, seeds: int, interval_of: IntervalOf = paired_interval) -> str:
        """What the outcome says about the claim, by the t interval or another one."""
        if outcome is None:
            return "not measured yet"
        seeds = self.seeds or seeds
        if outcome.n < seeds:
            return f"undecided yet (n = {outcome.n} of {seeds})"
        mean, low, high = interval_of(np.subtract(outcome.first, outcome.second))
        if -self.margin < low and high < self.margin:
            return HOLDS if self.claimed in ("same", "not lower") else NO_EFFECT
        above, below = low > 0 and mean >= self.margin, high < 0 and mean <= -self.margin
        if self.claimed == "":
            return "higher" if above else "lower" if below else UNDECIDED
        if self.claimed == "same":
            return OPPOSITE if above or below else UNDECIDED
        if self.claimed == "not lower":
            return HOLDS if low > -self.margin else OPPOSITE if high < -self.margin else UNDECIDED
        if self.claimed == "lower":
            above, below = below, above
        return HOLDS if above else OPPOSITE if below else UNDECIDED


class Spread(Comparison):
    """A comparison of how far the numbers of the seeds are from their median (Brown and Forsythe, 1974)."""

    def outcome(self, results: Mapping[str, Measures], seeds: int) -> Outcome | None:
        outcome = super().outcome(results, seeds)
        return outcome and Outcome(_deviations(outcome.first), _deviations(outcome.second), outcome.arm)


def _deviations(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(np.abs(np.subtract(values, np.median(values))).tolist())


def _key(cell: str, arm: str, seed: int) -> str:
    return ", ".join([*filter(None, (cell, arm)), f"seed {seed}"])


def spread(values: Sequence[float]) -> str:
    """Mean and standard deviation, the deviation only of several values: "0.930 ± 0.004"."""
    deviation = f" ± {np.std(values, ddof=1):.4f}" if len(values) > 1 else ""
    return f"{np.mean(values):.4f}{deviation}"

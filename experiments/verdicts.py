"""Paired comparisons of measured runs, and what they say about a claim. Needs no Keras."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kcrf.metrics.bootstrap import bootstrap_mean

__all__ = ["Comparison", "Outcome", "epochs_to_loss", "measure"]

DECIDED = ("holds", "does not hold here", "not decidable at this size")
Measures = Mapping[str, Any]


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


@dataclass(frozen=True)
class Outcome:
    """The measured numbers of a comparison: one pair for each seed, and the bootstrap interval of the difference."""

    first: tuple[float, ...]
    second: tuple[float, ...]
    arm: str

    @property
    def n(self) -> int:
        """The number of seeds."""
        return len(self.first)

    def interval(self) -> tuple[float, float, float]:
        """The mean difference with its 95 % interval, for at least one seed."""
        return bootstrap_mean(np.subtract(self.first, self.second))


@dataclass(frozen=True)
class Comparison:
    """Whether the first arm is higher than, lower than or the same as the second one, paired by seed.

    - higher: "holds" if the interval of the difference is above 0 and reaches `margin`; "does not hold here" if it is
      below `margin`. lower: the same with the sign changed.
    - not lower: "holds" if the interval is above `-margin`; "does not hold here" if it is below `-margin`.
    - same: "holds" if the interval is within `margin` of 0 on both sides; else "does not hold here" if it omits 0.
    - Otherwise "not decidable at this size"; with fewer seeds than the claim asks for, "not decidable yet".

    Attributes:
        first: The name of an arm.
        second: The name of another arm; of several arms, the one with the highest mean counts, over the seeds that all
            of them have.
        claimed: "higher", "lower", "not lower" or "same".
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

    def verdict(self, outcome: Outcome | None, seeds: int) -> str:
        """What the outcome says about the claim."""
        if outcome is None:
            return "not measured yet"
        seeds = self.seeds or seeds
        if outcome.n < seeds:
            return f"not decidable yet (n = {outcome.n} of {seeds})"
        _, low, high = outcome.interval()
        if self.claimed == "same":
            if -self.margin < low and high < self.margin:
                return DECIDED[0]
            return DECIDED[1] if low > 0 or high < 0 else DECIDED[2]
        if self.claimed == "not lower":
            low, high = low + self.margin, high + self.margin
            return DECIDED[0] if low > 0 else DECIDED[1] if high < 0 else DECIDED[2]
        if self.claimed == "lower":
            low, high = -high, -low
        if high < self.margin:
            return DECIDED[1]
        return DECIDED[0] if low > 0 else DECIDED[2]


def _key(cell: str, arm: str, seed: int) -> str:
    return ", ".join([*filter(None, (cell, arm)), f"seed {seed}"])


def spread(values: Sequence[float]) -> str:
    """Mean and standard deviation, the deviation only of several values: ".930 ± .004 (n = 8)"."""
    deviation = f" ± {np.std(values, ddof=1):.4f}" if len(values) > 1 else ""
    return f"{np.mean(values):.4f}{deviation} (n = {len(values)})"

"""How uncertain a tagger is about texts, by the measures of active learning. Needs NumPy only."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kcrf.chains import entropies_of
from kcrf.networks.network import TaggingNetwork
from kcrf.readers.units import Window

Windows = Sequence[tuple[int, Window]]
Measure = Callable[[TaggingNetwork, Any, Windows], np.ndarray]


def path_entropies(network: TaggingNetwork, scores: Any, windows: Windows) -> np.ndarray:
    """The entropy of the tag sequences of each window, in nats."""
    return network.entropies(scores)


def tag_entropies(network: TaggingNetwork, scores: Any, windows: Windows) -> np.ndarray:
    """The sum of the entropies of the tags of the units that each window keeps, in nats."""
    entropies = entropies_of(network.marginals(scores))  # (rows, time)
    return np.array([window.kept(row).sum() for (_, window), row in zip(windows, entropies, strict=True)])


def best_path_surprisals(network: TaggingNetwork, scores: Any, windows: Windows) -> np.ndarray:
    """Minus the log probability of the best tag sequence of each window, in nats."""
    surprisals = -network.best_paths(scores, 1)[1][:, 0]
    return np.where(np.isfinite(surprisals), surprisals, 0.0)  # a window without units has no path


# By name: the measure of a window, and whether the sum over the windows of a text is divided by its units.
STRATEGIES: dict[str, tuple[Measure, bool]] = {
    "mean-entropy": (path_entropies, True),
    "token-entropy": (tag_entropies, True),
    "sequence-entropy": (path_entropies, False),
    "least-confidence": (best_path_surprisals, False),
}
DEFAULT_STRATEGY = "mean-entropy"


def measure_of(strategy: str) -> Measure:
    """The measure of a strategy. Raises ValueError if there is no strategy of this name."""
    if strategy not in STRATEGIES:
        raise ValueError(f"`strategy` must be one of {', '.join(STRATEGIES)}. Received: {strategy!r}")
    return STRATEGIES[strategy][0]


def score_of(strategy: str, totals: np.ndarray, units: np.ndarray) -> np.ndarray:
    """The scores of texts, from the sums of the measure over each text and its number of units."""
    return totals / np.maximum(units, 1) if STRATEGIES[strategy][1] else totals


def label_uncertainties(strategy: str, probabilities: np.ndarray) -> np.ndarray:
    """The scores of texts that have one label each, from its probabilities `(texts, labels)`.

    >>> label_uncertainties("least-confidence", np.array([[0.5, 0.5], [1.0, 0.0]])).round(4).tolist()
    [0.6931, 0.0]
    """
    if measure_of(strategy) is best_path_surprisals:
        return -np.log(np.max(probabilities, axis=1)) + 0.0
    return entropies_of(probabilities)


def sums_of(values: np.ndarray, counts: Sequence[int]) -> np.ndarray:
    """The sums of the first so many values, of the next so many, and so on.

    >>> sums_of(np.array([1.0, 2.0, 3.0]), [2, 0, 1]).tolist()
    [3.0, 0.0, 3.0]
    """
    return np.bincount(np.repeat(np.arange(len(counts)), counts), values, minlength=len(counts))

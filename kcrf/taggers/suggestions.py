"""How uncertain a tagger is about texts, by the measures of active learning, and which to label. Needs no Keras."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar

import numpy as np

from kcrf.chains import entropies_of
from kcrf.corpora.splits import NearDuplicates
from kcrf.networks.network import TaggingNetwork
from kcrf.readers.units import Window

Result = TypeVar("Result")
Windows = Sequence[tuple[int, Window]]
Measure = Callable[[TaggingNetwork, Any, Windows], np.ndarray]
_AT_ONCE = 1000  # texts


@dataclass(frozen=True)
class Suggestion(Generic[Result]):
    """A text to label."""

    index: int  # in the texts that were given, counted from 0
    text: Any  # as it was given
    score: float  # the uncertainty of the model, by the strategy
    prediction: Result  # for annotators to correct


def at_once(items: Iterable[Any]) -> Iterator[list[Any]]:
    """Yields lists of at most so many items: what a model returns for them fits into memory."""
    items = iter(items)
    while part := list(islice(items, _AT_ONCE)):
        yield part


def most_uncertain(scores: np.ndarray) -> np.ndarray:
    """The indices of scores, the highest first, of equal scores the first one."""
    return np.argsort(-np.asarray(scores), kind="stable")


def distinct(indices: Iterable[Any], text_of: Callable[[int], str], seen: NearDuplicates) -> Iterator[int]:
    """Yields the indices whose texts are not empty, and are near-duplicates of no text before them.

    `text_of` is a function from an index to its text. The texts are added to `seen`.
    """
    for index in map(int, indices):
        text = text_of(index)
        if text.strip() and text not in seen:
            seen.add(text)
            yield index


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
    """Sums groups of consecutive values. `counts` has the number of values in each group.

    >>> sums_of(np.array([1.0, 2.0, 3.0]), [2, 0, 1]).tolist()
    [3.0, 0.0, 3.0]
    """
    return np.bincount(np.repeat(np.arange(len(counts)), counts), values, minlength=len(counts))

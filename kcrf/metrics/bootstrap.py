"""Whether the difference between two taggers is significant: a paired bootstrap over sentences."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

_AT_ONCE = 1 << 22  # numbers drawn at a time, for small memory


def span_counts(gold: Sequence[Any], predicted: Sequence[Any]) -> np.ndarray:
    """Counts the spans of each sentence: correct, of gold, of the prediction."""
    counts = []
    for spans, guesses in zip(gold, predicted, strict=True):
        spans, guesses = ({tuple(span[:3]) for span in spans} for spans in (spans, guesses))
        counts.append((len(spans & guesses), len(spans), len(guesses)))
    return np.array(counts, np.int64).reshape(-1, 3)


def bootstrap_difference(
    first: np.ndarray, second: np.ndarray, level: float = 0.95, samples: int = 2000, seed: int = 0
) -> tuple[float, float, float]:
    """The difference between the F1 of two taggers on the same sentences, with its confidence interval.

    Each bootstrap sample contains as many sentences as there are, drawn with replacement (Efron, 1979), the same for
    both taggers (Berg-Kirkpatrick et al., 2012, https://aclanthology.org/D12-1091). If the interval contains 0, other
    sentences of the same kind might reverse the order of the two taggers.
    """
    first, second = np.asarray(first), np.asarray(second)
    if first.shape != second.shape or first.ndim not in (2, 3) or not len(first):
        raise ValueError(
            "`bootstrap_difference` needs the counts of the same sentences for both taggers, at least one sentence. "
            f"Received: shapes {first.shape} and {second.shape}"
        )
    draws = _draws(len(first), samples, seed)
    differences = np.concatenate([_difference(drawn, first, second) for drawn in draws])
    (difference,) = _difference(np.ones((1, len(first)), int), first, second)
    return float(difference), *interval(differences, level)


def _difference(drawn: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The difference of two taggers on each sample, from `(samples, sentences)`, how often it has each sentence."""
    return _mean_f1(np.tensordot(drawn, first, 1)) - _mean_f1(np.tensordot(drawn, second, 1))


def _mean_f1(sums: np.ndarray) -> np.ndarray:
    """F1 of sums of counts, `(samples, 3)`, or its mean over groups, `(samples, groups, 3)`."""
    return f1_of_counts(sums).reshape(len(sums), -1).mean(axis=1)


def bootstrap_predictions(rows: Sequence[Any]) -> np.ndarray:
    """The F1 on bootstrap samples of the predictions of a run, whose rows have `gold` and `found`."""
    return bootstrap_scores(span_counts([row["gold"] for row in rows], [row["found"] for row in rows]))


def interval(samples: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """The bounds between which this fraction of the samples lies, as many below as above."""
    low, high = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def bootstrap_scores(counts: np.ndarray, samples: int = 2000, seed: int = 0) -> np.ndarray:
    """The F1 on bootstrap samples. For the same seed and number of sentences, the samples are the same."""
    counts = np.asarray(counts)
    return np.concatenate([f1_of_counts(drawn @ counts) for drawn in _draws(len(counts), samples, seed)])


def _draws(count: int, samples: int, seed: int) -> Iterator[np.ndarray]:
    """Yields integer arrays `(samples, sentences)`: how often each sample contains each sentence."""
    rng = np.random.default_rng(seed)
    for start in range(0, samples, step := max(1, _AT_ONCE // count)):
        yield rng.multinomial(count, np.full(count, 1 / count), min(step, samples - start))


def f1_of_counts(counts: np.ndarray) -> Any:
    """F1 from sums of `span_counts` in the last axis; 0 if there are no spans."""
    correct, gold, predicted = np.moveaxis(counts, -1, 0)
    return 2 * correct / np.maximum(1, gold + predicted)

"""How good a tagger is on texts without labels: expected scores from its own probabilities. Needs no Keras."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kcrf.linear import LinearModel
from kcrf.metrics.learning_curves import WIDTH, Range
from kcrf.readers import CharacterReader, WordReader
from kcrf.readers.vocabulary import UNKNOWN
from kcrf.runs.formats import probabilities_of, read_predictions
from kcrf.runs.names import PREDICTIONS
from kcrf.tags import TagScheme

_DROP = 0.03  # of the mean probability, from which on texts are called unlike the training data
_UNSEEN = 0.02  # more of the texts is new to the model than of the held-out texts: worth a note
_INPUTS: dict[type[Any], str] = {CharacterReader: "characters", WordReader: "tokens"}  # whose unknown ones are counted
# Of some texts: their number, the label and the probability of each prediction, the expected number of each label, and
# the `unseen_counts`.
Expected = tuple[int, Iterable[tuple[str, float]], Iterable[float], np.ndarray]


@dataclass(frozen=True)
class ExpectedScores:
    """Expected precision, recall and F1: each a `Range` of the score and its interval of 95 %, None if it is undefined.

    Attributes:
        found: The number of predictions.
        right: The expected number of right predictions.
        true: The expected number of words, entities, tokens or texts.
        deviation: The standard deviation of `right`, with the uncertainty of the calibration.
        true_deviation: The standard deviation of `true`.
    """

    found: int
    right: float
    true: float
    deviation: float
    true_deviation: float = 0.0

    def _of(self, total: float, deviation: float = 0.0) -> Range | None:
        if not total:
            return None
        value = min(1.0, self.right / total)
        width = WIDTH * math.hypot(self.deviation, value * deviation) / total
        return Range(value, max(0.0, value - width), min(1.0, value + width))

    precision = property(lambda self: self._of(self.found))
    recall = property(lambda self: self._of(self.true, self.true_deviation))
    f = property(lambda self: self._of((self.found + self.true) / 2, self.true_deviation / 2))

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON: scores as a list of value, low and high."""
        scores = {"precision": self.precision, "recall": self.recall, "f": self.f}
        plain = {name: score and [round(x, 4) for x in score] for name, score in scores.items()}
        return {**plain, "found": self.found, "expected": round(self.true, 1)}


@dataclass(frozen=True)
class Estimate:
    """How good a tagger is on texts without labels.

    The expected number of right predictions is the sum of their probabilities. The expected number of words or entities
    is the sum, over all places, of the probability that one begins. Both hold for texts like the training data.

    Attributes:
        texts: The number of texts.
        all: The `ExpectedScores` of all labels together.
        labels: A dict of the `ExpectedScores` of each label; empty for words without classes.
        notes: Sentences on why the estimate may not hold.
    """

    texts: int
    all: ExpectedScores
    labels: dict[str, ExpectedScores]
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        labels = {label: scores.as_dict() for label, scores in self.labels.items()}
        return {"texts": self.texts, **self.all.as_dict(), "labels": labels, "notes": list(self.notes)}


@dataclass(frozen=True)
class HeldOut:
    """Predictions for the held-out texts of a run: their probabilities, and whether each is right.

    `unseen` has the numbers of unseen features and of all features of the texts. A cross-validated run also has
    `numbers`, the expected and the real number of entities of each text.
    """

    probabilities: np.ndarray
    right: np.ndarray
    unseen: np.ndarray
    numbers: np.ndarray

    @property
    def deviation(self) -> float:
        """The standard deviation of the mean difference between a probability and the truth, at least by chance."""
        count, right = len(self.right), self.right.sum()
        rate = (right + 1) / (count + 2)
        return math.hypot(math.sqrt(rate * (1 - rate) / count), self.probabilities.mean() - right / count)

    @property
    def ratio(self) -> tuple[float, float]:
        """The factor that corrects the expected number of entities, and the standard deviation of this factor."""
        if not self.numbers.any():
            return 1.0, 0.0
        expected, real = self.numbers.sum(axis=0).tolist()
        ratio = (real + 1) / (expected + 1)
        errors = self.numbers @ [-ratio, 1]
        return ratio, float(np.sqrt((errors**2).sum()) / (expected + 1))


def held_out_of(run: Path | None, unseen_in: Callable[[list[Any]], np.ndarray]) -> HeldOut | None:
    """The predictions in a run folder, which are those for the last held-out part; None if there are none."""
    path = run and run / PREDICTIONS
    rows = read_predictions(path) if path and path.is_file() else []
    if not (pairs := probabilities_of(rows)):
        return None
    numbers = np.array([(row["expected"], len(row["gold"])) for row in rows if "expected" in row]).reshape(-1, 2)
    counts = [row["unseen"] for row in rows if "unseen" in row]
    unseen = np.sum(counts, axis=0) if counts else unseen_in([row["text"] for row in rows])
    probabilities, right = np.array(pairs, float).T
    return HeldOut(probabilities, right, unseen, numbers)


def begins_of(scheme: TagScheme) -> np.ndarray:
    """The tags that begin a span of each label, `(labels, tags)` of 0 and 1; one row for words without classes."""
    labels = [[name] for name in scheme.types] or [[]]
    rows = np.zeros((len(labels), len(scheme)))
    for row, label in zip(rows, labels, strict=True):
        row[[scheme.encode([(0, length, *label)], length)[0] for length in (1, 3)]] = 1
    return rows


def estimate_of(parts: Iterable[Expected], labels: Iterable[str], held_out: HeldOut | None) -> Estimate:
    """The estimate for texts that come in parts, with notes on where it may not hold."""
    # by label: predictions, their probabilities, the variance of this sum, and the expected number
    rows = {label: np.zeros(4) for label in labels or ("",)}
    texts, unseen = 0, np.zeros(2)
    for count, predictions, true, counts in parts:
        texts, unseen = texts + count, unseen + counts
        for label, p in predictions:
            rows.setdefault(label, np.zeros(4))[:3] += (1, p, p * (1 - p))
        for row, number in zip(list(rows.values()), true):
            row[3] += number
    together = _scores(np.sum(list(rows.values()), axis=0), held_out)
    by_label = {label: _scores(row, held_out) for label, row in rows.items() if label}
    return Estimate(texts, together, by_label, tuple(_notes(together, held_out, unseen)))


def _scores(row: np.ndarray, held_out: HeldOut | None) -> ExpectedScores:
    """The deviation has two parts: which predictions are right by chance, and how well probabilities are calibrated."""
    found, right, variance, true = row.tolist()
    calibration = held_out.deviation * found if held_out else 0.0
    ratio, deviation = held_out.ratio if held_out else (1.0, 0.0)
    right_deviation = math.hypot(math.sqrt(variance), calibration)
    return ExpectedScores(int(found), right, max(right, true * ratio), right_deviation, true * deviation)


def _notes(scores: ExpectedScores, held_out: HeldOut | None, unseen: np.ndarray) -> Iterator[str]:
    """Yields sentences on why an estimate may not hold."""
    if held_out is None:
        yield "The calibration of the model is not known: no held-out predictions are beside it."
        return
    usual_mean, spread = held_out.probabilities.mean(), held_out.probabilities.std() / math.sqrt(len(held_out.right))
    if scores.found and usual_mean - scores.right / scores.found > max(_DROP, WIDTH * spread):
        yield (
            f"The mean probability of a prediction is {scores.right / scores.found:.2f}, on the held-out texts of the "
            f"run {usual_mean:.2f}: these texts are unlike the training data, and the real scores may be lower."
        )
    new, usual = (counts[0] / max(1, counts[1]) for counts in (unseen, held_out.unseen))
    if new > usual + _UNSEEN and held_out.unseen[1]:
        yield (
            f"{new:.1%} of the characters, words or n-grams are new to the model, {usual:.1%} of those in the "
            "held-out texts: these texts are unlike the training data."
        )


def unseen_counts(network: Any, reader: Any, texts: list[str], tokens: Any = None) -> np.ndarray:
    """How many features of the texts a model has not learned, and how many there are; zeros where that is not known.

    They are the n-gram features of a linear model, or the characters or words of a network with a vocabulary of them.
    """
    name = "ngrams" if isinstance(getattr(network, "model", None), LinearModel) else _INPUTS.get(type(reader), "")
    if not name or name != "ngrams" and reader.vocabulary is None:
        return np.zeros(2)
    known = network.model.scores.any(axis=1) if name == "ngrams" else None
    counts = np.zeros(2)
    for reading in reader.read(texts, tokens):
        for window in reading.windows:
            numbers = np.asarray(window.inputs[name]).ravel()
            unknown = numbers == UNKNOWN if known is None else ~known[numbers] & (numbers > 0)
            counts += (unknown.sum(), (numbers > 0).sum())
    return counts

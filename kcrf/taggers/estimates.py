"""How good a tagger is on texts without labels: expected scores from its own probabilities. Needs no Keras."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kcrf.linear import LinearModel
from kcrf.metrics.learning_curves import WIDTH, Range
from kcrf.readers import CharacterReader, WordReader
from kcrf.readers.vocabulary import UNKNOWN
from kcrf.runs.formats import probabilities_of
from kcrf.tags import TagScheme

_DROP = 0.03  # of the mean probability, from which on texts are called unlike the training data
_UNSEEN = 0.02  # more of the texts is new to the model than of the held-out texts: worth a note
_INPUTS: dict[type[Any], str] = {CharacterReader: "characters", WordReader: "tokens"}  # whose unknown ones are counted


@dataclass(frozen=True)
class ExpectedScores:
    """Expected precision, recall and F1: each a `Range` of the score and its interval of 95 %, None if undefined."""

    found: int  # predictions
    right: float  # the expected number of right predictions
    true: float  # the expected number of words, entities, tokens or texts
    deviation: float  # the standard deviation of `right`, with the uncertainty of the calibration
    true_deviation: float = 0.0  # the standard deviation of `true`

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
    """

    texts: int  # the number of texts
    all: ExpectedScores  # of all labels together
    labels: dict[str, ExpectedScores]  # empty for words without classes
    notes: tuple[str, ...] = ()  # sentences on why the estimate may not hold

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        labels = {label: scores.as_dict() for label, scores in self.labels.items()}
        return {"texts": self.texts, **self.all.as_dict(), "labels": labels, "notes": list(self.notes)}


@dataclass(frozen=True)
class HeldOut:
    """Predictions for the held-out texts of a run."""

    probabilities: np.ndarray
    right: np.ndarray  # whether each prediction is right
    unseen: np.ndarray  # the `unseen_counts` of the texts
    numbers: np.ndarray  # (texts, 2): the expected and the real number of entities, if the run is cross-validated

    @property
    def deviation(self) -> float:
        """The standard deviation of the mean difference between a probability and the truth, at least by chance."""
        count, right = len(self.right), self.right.sum()
        rate = (right + 1) / (count + 2)
        return math.hypot(math.sqrt(rate * (1 - rate) / count), self.probabilities.mean() - right / count)

    @property
    def ratio(self) -> tuple[float, float]:
        """The factor that corrects the expected number of entities, and its standard deviation."""
        expected, real = self.numbers.sum(axis=0)
        ratio = (real + 1) / (expected + 1)
        return float(ratio), float(np.linalg.norm(self.numbers @ [-ratio, 1]) / (expected + 1))


def held_out_of(rows: Sequence[Mapping[str, Any]], unseen_in: Callable[[list[str]], np.ndarray]) -> HeldOut | None:
    """The predictions of a run for its last held-out part; None if there are none with probabilities."""
    if not (pairs := probabilities_of(rows)):
        return None
    numbers = np.array([(row["expected"], len(row["gold"])) for row in rows if "expected" in row]).reshape(-1, 2)
    counts = [row["unseen"] for row in rows if "unseen" in row]
    texts = ["\t".join(filter(None, (row["text"], row.get("text_b")))) for row in rows]
    probabilities, right = np.array(pairs, float).T
    return HeldOut(probabilities, right, np.sum(counts, axis=0) if counts else unseen_in(texts), numbers)


def begins_of(scheme: TagScheme) -> np.ndarray:
    """The tags that begin a span of each label, `(labels, tags)` of 0 and 1; one row for words without classes."""
    labels = [[name] for name in scheme.types] or [[]]
    rows = np.zeros((len(labels), len(scheme)))
    for row, label in zip(rows, labels, strict=True):
        row[[scheme.encode([(0, length, *label)], length)[0] for length in (1, 3)]] = 1
    return rows


def estimate_of(parts: Iterable[tuple[Any, ...]], labels: Iterable[str], held_out: HeldOut | None) -> Estimate:
    """The estimate for texts that come in parts, with notes on where it may not hold.

    Of a part: the number of texts, the label and the probability of each prediction, the expected number of each label,
    and the `unseen_counts`.
    """
    # by label: predictions, their probabilities, the variance of this sum, and the expected number
    rows = {label: np.zeros(4) for label in labels or ("",)}
    texts, unseen = 0, np.zeros(2)
    for count, predictions, true, counts in parts:
        texts, unseen = texts + count, unseen + counts
        for label, p in predictions:
            rows.setdefault(label, np.zeros(4))[:3] += (1, p, p * (1 - p))
        for row, number in zip(rows.values(), true):
            row[3] += number
    together = _scores(np.sum(list(rows.values()), axis=0), held_out)
    by_label = {label: _scores(row, held_out) for label, row in rows.items() if label}
    return Estimate(texts, together, by_label, tuple(_notes(together, held_out, unseen)))


def _scores(row: np.ndarray, held_out: HeldOut | None) -> ExpectedScores:
    """The deviation has two parts: which predictions are right by chance, and how well probabilities are calibrated."""
    found, right, variance, true = row.tolist()
    calibration, (ratio, deviation) = (held_out.deviation, held_out.ratio) if held_out else (0.0, (1.0, 0.0))
    right_deviation = math.hypot(math.sqrt(variance), calibration * found)
    return ExpectedScores(int(found), right, max(right, true * ratio), right_deviation, true * deviation)


def _notes(scores: ExpectedScores, held_out: HeldOut | None, unseen: np.ndarray) -> Iterator[str]:
    """Yields sentences on why an estimate may not hold."""
    if held_out is None:
        yield "The calibration of the model is not known: no held-out predictions are beside it."
        return
    usual, spread = held_out.probabilities.mean(), held_out.probabilities.std() / math.sqrt(len(held_out.right))
    if scores.found and usual - (mean := scores.right / scores.found) > max(_DROP, WIDTH * spread):
        yield (
            f"The mean probability of a prediction is {mean:.2f}, on the held-out texts of the run {usual:.2f}: these "
            "texts are unlike the training data, and the real scores may be lower."
        )
    new, known = (counts[0] / max(1, counts[1]) for counts in (unseen, held_out.unseen))
    if new > known + _UNSEEN and held_out.unseen[1]:
        yield (
            f"{new:.1%} of the characters, words or n-grams are new to the model, {known:.1%} of those in the held-out "
            "texts: these texts are unlike the training data."
        )


def unseen_counts(network: Any, reader: Any, texts: Iterable[str]) -> np.ndarray:
    """How many features of the texts a model has not learned, and how many there are; zeros where that is not known.

    They are the n-gram features of a linear model, or the characters or words of a network with a vocabulary of them.
    """
    is_linear, counts = isinstance(getattr(network, "model", None), LinearModel), np.zeros(2)
    name = "ngrams" if is_linear else _INPUTS.get(type(reader))
    pieces = [piece for text in texts for piece in text.split("\t")]  # a tab separates the texts of a pair
    for reading in reader.read(pieces) if name else ():
        for window in reading.windows:
            numbers = np.ravel(window.inputs.get(name, ()))
            numbers = numbers[numbers > 0]
            unknown = ~network.model.scores[numbers].any(axis=1) if is_linear else numbers == UNKNOWN
            counts += (unknown.sum(), len(numbers))
    return counts

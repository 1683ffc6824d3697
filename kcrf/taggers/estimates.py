"""How good a tagger is on texts without labels: expected scores from its own probabilities. Needs no Keras."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kcrf.linear import LinearModel
from kcrf.metrics.learning_curves import WIDTH, Range
from kcrf.readers import CharacterReader, WordReader
from kcrf.readers.vocabulary import UNKNOWN
from kcrf.runs.formats import probabilities_of
from kcrf.tags import TagScheme

_DROP = 0.03  # of the mean probability, from which on texts are called unlike the training data
_UNSEEN = 0.015  # more of the texts is new to the model than of held-out ones: worth a note (usual: up to 0.01)
_INPUTS: dict[type[Any], str] = {CharacterReader: "characters", WordReader: "tokens"}  # whose unknown ones are counted


@dataclass(frozen=True)
class ExpectedScores:
    """Expected scores: each a `Range` of the score and its interval of 95 %, or None if it is undefined."""

    found: int  # the number of predictions
    right: float  # the expected number of right predictions: the sum of their probabilities
    true: float  # the expected number of words, entities, tokens or texts: the sum of the probabilities that one begins
    precision: Range | None
    recall: Range | None
    f: Range | None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON: scores as a list of value, low and high."""
        scores = {"precision": self.precision, "recall": self.recall, "f": self.f}
        plain = {name: score and [round(x, 4) for x in score] for name, score in scores.items()}
        return {**plain, "found": self.found, "expected": round(self.true, 1)}


@dataclass(frozen=True)
class Estimate:
    """How good a tagger is on texts without labels, if they are like the training data."""

    texts: int  # the number of texts
    all: ExpectedScores  # of all labels together
    labels: dict[str, ExpectedScores]  # empty for words without classes
    notes: tuple[str, ...] = ()  # sentences on why the estimate may not hold

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        labels = {label: scores.as_dict() for label, scores in self.labels.items()}
        return {"texts": self.texts, **self.all.as_dict(), "labels": labels, "notes": list(self.notes)}


class HeldOut(NamedTuple):
    """What the predictions for the held-out texts of a run say about its probabilities. By default, there are none."""

    mean: float | None = None  # probability of a prediction; None if it is not known, for a reason
    error: float = 0.0  # the standard error of this mean
    deviation: float = 0.0  # of the mean difference between a probability and the truth, at least by chance
    unseen: Any = (0, 0)  # the `unseen_counts`
    spread: float = 1.0  # variance of the number of right predictions in a text, by that of independent predictions
    ratio: float = 1.0  # of the real and the expected number of words or entities
    ratio_deviation: float = 0.0
    real_spread: float | None = None  # variance of the real number in a text, by its mean
    reason: str = "the model has no predictions for held-out texts"


def held_out_of(rows: Sequence[Mapping[str, Any]], unseen_in: Callable[[list[str]], np.ndarray]) -> HeldOut:
    """What the predictions of a run for its last held-out part say."""
    if not rows:
        return HeldOut()
    of_texts = [np.reshape(probabilities_of([row]), (-1, 2)) for row in rows]
    (probabilities, right), count = np.concatenate(of_texts).T, max(1, sum(map(len, of_texts)))
    more = np.array([(pairs @ [-1, 1]).sum() for pairs in of_texts])  # right ones of each text than expected
    spread = max(1.0, (more @ more + 1) / (probabilities @ (1 - probabilities) + 1))
    rate = (right.sum() + 1) / (count + 2)
    deviation = math.hypot(math.sqrt(spread * rate * (1 - rate) / count), more.sum() / count)
    unseen = [row["unseen"] for row in rows if "unseen" in row]
    unseen = unseen or [unseen_in(["\t".join(filter(None, (row["text"], row.get("text_b")))) for row in rows])]
    mean, error = (probabilities.mean(), probabilities.std() / math.sqrt(count)) if len(right) else (None, 0.0)
    return HeldOut(mean, error, deviation, np.sum(unseen, axis=0), spread, *_numbers(rows))


def _numbers(rows: Sequence[Mapping[str, Any]]) -> tuple[float, float, float | None]:
    """The ratio of the real and the expected number of words or entities, its standard deviation, also by differences
    between the models of folds, and the variance of the real number in a text by its mean."""
    counted = [(row["expected"], len(row["gold"]), row.get("fold", 0)) for row in rows if "expected" in row]
    if not counted:
        return 1.0, 0.0, None
    numbers, fold_of = np.array(counted)[:, :2], np.array(counted)[:, 2]
    expected, real = (numbers.sum(axis=0) + 1).tolist()
    squares, folds = float(((numbers @ [-real / expected, 1]) ** 2).sum()), np.unique(fold_of)
    variance = squares / real**2  # of the logarithm of the ratio
    if len(folds) > 1:
        of_folds = [numbers[fold_of == fold].sum(axis=0) + 1 / len(folds) for fold in folds]
        between = max(0.0, np.var(np.log(of_folds) @ [-1, 1], ddof=1) - len(folds) * variance)
        variance += between * (1 + 1 / len(folds))  # of one more model, and of the mean of these
    return real / expected, real / expected * math.sqrt(variance), squares / real


def begins_of(scheme: TagScheme) -> np.ndarray:
    """The tags that begin a span of each label, `(labels, tags)` of 0 and 1; one row for words without classes."""
    labels = [[name] for name in scheme.types] or [[]]
    firsts = [[scheme.encode([(0, length, *label)], length)[0] for length in (1, 3)] for label in labels]
    return np.eye(len(scheme))[firsts].max(axis=1)


def estimate_of(parts: Iterable[tuple[Any, ...]], labels: Iterable[str], held_out: HeldOut) -> Estimate:
    """The estimate for parts of texts: their number, the label and the probability of each prediction, the expected
    number of each label, and the `unseen_counts`."""
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


def _scores(row: np.ndarray, held_out: HeldOut) -> ExpectedScores:
    found, right, variance, expected = row.tolist()
    true = max(right, expected * held_out.ratio)
    # how many are right, and how many there are, by chance; and how well probabilities are calibrated
    right_deviation = math.hypot(math.sqrt(held_out.spread * variance), held_out.deviation * found)
    known = held_out.real_spread
    by_chance = held_out.spread * max(0.0, true - found) if known is None else known * true
    deviation = math.hypot(math.sqrt(by_chance), expected * held_out.ratio_deviation)

    def share(total: float, deviation: float) -> Range | None:
        """The number of right predictions over a total number, with its standard deviation."""
        if not total:
            return None
        value = min(1.0, right / total)
        width = WIDTH * math.hypot(right_deviation, value * deviation) / total
        return Range(value, max(0.0, value - width), min(1.0, value + width))

    scores = share(found, 0.0), share(true, deviation), share((found + true) / 2, deviation / 2)
    return ExpectedScores(int(found), right, true, *scores)


def _notes(scores: ExpectedScores, held_out: HeldOut, unseen: np.ndarray) -> Iterator[str]:
    """Yields sentences on why an estimate may not hold."""
    if held_out.mean is None:
        alone = "" if held_out.deviation else ", and the intervals contain chance alone"
        yield f"The calibration of these probabilities is not known{alone}: {held_out.reason}."
    elif scores.found and held_out.mean - scores.right / scores.found > max(_DROP, WIDTH * held_out.error):
        yield (
            f"The mean probability of a prediction is {scores.right / scores.found:.2f}, on the held-out texts of the "
            f"run {held_out.mean:.2f}: these texts are unlike the training data, and the real scores may be lower."
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

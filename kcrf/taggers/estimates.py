"""How good a tagger is on texts without labels: expected scores from its own probabilities. Needs no Keras."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kcrf.readers.vocabulary import fold
from kcrf.runs import RunFolder
from kcrf.runs.formats import read_predictions
from kcrf.runs.names import PREDICTIONS
from kcrf.tags import TagScheme

_WIDTH = 1.96  # standard deviations on either side of an interval of 95 %
_DROP = 0.03  # of the mean probability, from which on texts are called unlike the training data
_UNSEEN = 0.01  # fraction of unseen characters that is worth a note


@dataclass(frozen=True)
class ExpectedScore:
    """A score that is expected, and an interval that contains the real one in 95 of 100 cases."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, value: float, deviation: float) -> "ExpectedScore":
        """The score with the interval of a normal distribution, cut to [0, 1]."""
        return cls(value, max(0.0, value - _WIDTH * deviation), min(1.0, value + _WIDTH * deviation))

    def as_list(self) -> list[float]:
        """The score and its interval, with four digits."""
        return [round(x, 4) for x in (self.value, self.low, self.high)]


@dataclass(frozen=True)
class ExpectedScores:
    """Expected precision, recall and F1.

    Attributes:
        found: The number of predictions.
        right: The expected number of right predictions.
        true: The expected number of words, entities, tokens or texts.
        deviation: The standard deviation of `right`, with the uncertainty of the calibration.
    """

    found: int
    right: float
    true: float
    deviation: float

    @property
    def precision(self) -> ExpectedScore | None:
        """The expected part of the predictions that are right. None without predictions."""
        return self._of(self.found)

    @property
    def recall(self) -> ExpectedScore | None:
        """The expected part of what is in the texts that is found. None if nothing is expected in them."""
        return self._of(self.true)

    @property
    def f(self) -> ExpectedScore | None:
        """The expected F1."""
        return self._of((self.found + self.true) / 2)

    def _of(self, total: float) -> ExpectedScore | None:
        return ExpectedScore.of(self.right / total, self.deviation / total) if total else None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        scores = {"precision": self.precision, "recall": self.recall, "f": self.f}
        plain = {name: score and score.as_list() for name, score in scores.items()}
        return {**plain, "found": self.found, "expected": round(self.true, 1)}


@dataclass(frozen=True)
class Estimate:
    """How good a tagger is on texts without labels, by its own probabilities.

    The expected number of right predictions is the sum of their probabilities. The expected number of words or entities
    in the texts is the sum of the probabilities that one begins, over all places. The estimate holds as far as the
    probabilities are calibrated, that is for texts like those of the training set; `notes` says where it may not hold.

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
    """What a tagger predicted for the texts on which its run was scored.

    Attributes:
        found: The number of predictions.
        expected: The sum of their probabilities.
        right: How many were right.
    """

    found: int
    expected: float
    right: int

    @property
    def deviation(self) -> float:
        """The standard deviation of the mean difference between a probability and the truth, at least by chance."""
        if not self.found:
            return 0.0
        rate = (self.right + 1) / (self.found + 2)
        chance = math.sqrt(rate * (1 - rate) / self.found)
        return math.hypot(chance, (self.expected - self.right) / self.found)


def begins_of(scheme: TagScheme) -> np.ndarray:
    """The tags that begin a span of each label, `(labels, tags)` of 0 and 1; one row for words without classes."""
    rows = np.zeros((len(scheme.types) or 1, len(scheme)))
    for row, label in zip(rows, [[name] for name in scheme.types] or [[]], strict=True):
        for length in (1, 3):
            row[scheme.encode([(0, length, *label)], length)[0]] = 1
    return rows


def expected_scores(
    labels: Sequence[str],
    probabilities: Mapping[str, Sequence[float]],
    true: Mapping[str, float],
    held_out: HeldOut | None,
) -> tuple[ExpectedScores, dict[str, ExpectedScores]]:
    """The expected scores of all predictions, and those of each label.

    Args:
        labels: The labels; one for words without classes.
        probabilities: The probabilities of the predictions with each label.
        true: The expected number of spans of each label.
        held_out: What is known of the calibration, or None.
    """
    by_label = {label: _scores(probabilities.get(label, []), true.get(label, 0.0), held_out) for label in labels}
    together = _scores([p for ps in probabilities.values() for p in ps], sum(true.values()), held_out)
    return together, by_label


def _scores(probabilities: Sequence[float], true: float, held_out: HeldOut | None) -> ExpectedScores:
    """The deviation has two parts: which predictions are right by chance, and how well probabilities are calibrated."""
    p = np.asarray(probabilities, float)
    calibration = held_out.deviation * len(p) if held_out else 0.0
    return ExpectedScores(len(p), float(p.sum()), float(true), math.hypot(math.sqrt((p * (1 - p)).sum()), calibration))


def held_out_of(run: RunFolder) -> HeldOut | None:
    """The predictions in a run folder, which are those for the last held-out part; None if it has none."""
    path = run.file(PREDICTIONS)
    rows = read_predictions(path) if path.is_file() else []
    found = expected = right = 0.0
    for row in rows:
        if isinstance(row["found"], list):
            gold = set(row["gold"])
            found += len(row["found"])
            expected += sum(p for *_, p in row["found"])
            right += sum(span[:3] in gold for span in row["found"])
        elif row["probabilities"]:
            found += 1
            expected += row["probabilities"][row["found"]]
            right += row["gold"] == row["found"]
    return HeldOut(int(found), expected, int(right)) if found else None


def notes_on(probabilities: Sequence[float], held_out: HeldOut | None, texts: Sequence[str], reader: Any) -> list[str]:
    """Sentences on why an estimate may not hold.

    Args:
        probabilities: Those of all predictions.
        held_out: What is known of the calibration, or None.
        texts: The texts.
        reader: The reader of the model.
    """
    notes = []
    if held_out is None:
        notes.append("The calibration of the model is not known: no held-out predictions are beside it.")
    elif probabilities:
        usual, mean = held_out.expected / held_out.found, float(np.mean(probabilities))
        if usual - mean > _DROP:
            notes.append(
                f"The mean probability of a prediction is {mean:.2f}, on the held-out texts of the run {usual:.2f}: "
                "these texts are unlike the training data, and the real scores may be lower than the expected ones."
            )
    unseen = _unseen_characters(texts, reader)
    if unseen is not None and unseen > _UNSEEN:
        notes.append(f"{unseen:.1%} of the characters are not in the training data.")
    return notes


def _unseen_characters(texts: Sequence[str], reader: Any) -> float | None:
    """The fraction of the characters that the vocabulary of a model of characters lacks."""
    characters = getattr(getattr(reader, "vocabulary", None), "characters", None)
    if not isinstance(characters, list):
        return None
    known, folded = set(characters), [fold(c) for text in texts for c in text if not c.isspace()]
    return sum(c not in known for c in folded) / len(folded) if folded else None

"""The answers of a teacher: of a tagger the expected counts of each window, of a classifier softened probabilities."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from kcrf.distillation.targets import SoftTags

__all__ = ["check_units", "expected_targets", "join_counts", "label_targets", "soften", "split_counts"]


def soften(probabilities: np.ndarray, temperature: float) -> np.ndarray:
    """Probabilities as they would be with all scores divided by a temperature.

    Args:
        probabilities: `(..., classes)`.
        temperature: Above 1 they come closer to each other.

    >>> soften(np.array([0.8, 0.2]), 2.0).round(3).tolist()  # the square roots, in proportion
    [0.667, 0.333]
    """
    with np.errstate(divide="ignore"):  # the logarithm of 0 is -inf, of which the power is 0 again
        scores = np.log(probabilities) / temperature
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def expected_targets(texts: Sequence[str], counts: Sequence[Any], windows: Iterable[Any]) -> list[Any]:
    """The windows of a student with the counts of its teacher next to their tags.

    Args:
        texts: List of strings.
        counts: For each text a list with `(expected tags (units, tags), expected steps (tags, tags))` of each window of
            the teacher, as `kcrf.taggers.Tagger.expected_counts` returns it.
        windows: `(inputs, tags)` of each window of the student, those of a text one after the other.

    Returns:
        A list of `(inputs, SoftTags)`.

    Raises:
        ValueError: Teacher and student cut a text into other units or windows; names the first such text.
    """
    check_units(texts, [[len(expected) for expected, _ in windows_of_text] for windows_of_text in counts], windows)
    targets = []
    for (inputs, tags), (expected, steps) in zip(windows, chain.from_iterable(counts), strict=True):
        array = np.zeros((len(tags), expected.shape[1]), "float32")
        array[_unit_positions(inputs, len(tags))] = expected
        targets.append((inputs, SoftTags(tags, array, np.asarray(steps, "float32"))))
    return targets


def check_units(texts, counts, windows):
    """Raises ValueError if a teacher cuts a text into other units or windows than a student; names the first such text.

    Args:
        texts: List of strings.
        counts: For each text a list with the number of units of each window of the teacher.
        windows: `(inputs, tags)` of each window of the student, those of a text one after the other.
    """
    of_student = iter([len(_unit_positions(inputs, len(tags))) for inputs, tags in windows])
    for text, counts_of_text in zip(texts, counts, strict=True):
        for count in counts_of_text:
            if (other := next(of_student, 0)) != count:
                raise _other_units(text, count, other)
    if (other := next(of_student, None)) is not None:
        raise _other_units(texts[-1], 0, other)


def _unit_positions(inputs, length):
    """Where the units of a window are: all of its positions, but for a BERT, which reads further pieces of words."""
    return np.flatnonzero(inputs["tagged"]) if "tagged" in inputs else np.arange(length)


def _other_units(text, teacher, student):
    return ValueError(
        "`teacher` must cut texts into the units of the student, characters, words or the words of the same BERT's "
        "tokenizer, and long texts into the same windows, which a run with a BERT and one without do not. "
        f"Received: {teacher} units of the teacher and {student} of the student in a window, at {text[:40]!r}"
    )


def join_counts(counts):
    """The counts of texts as a dict of arrays, for a file; `split_counts` is the inverse."""
    windows = [window for rows in counts for window in rows]
    return {
        "windows": np.array([len(rows) for rows in counts]),
        "units": np.array([len(expected) for expected, _ in windows]),
        "tags": np.concatenate([expected for expected, _ in windows]),
        "steps": np.stack([steps for _, steps in windows]),
    }


def split_counts(arrays):
    """The counts that `join_counts` was given."""
    tags = np.split(arrays["tags"], np.cumsum(arrays["units"])[:-1])
    windows = iter(list(zip(tags, arrays["steps"], strict=True)))
    return [[next(windows) for _ in range(count)] for count in arrays["windows"].tolist()]


def label_targets(windows, answers):
    """The windows of a student of texts with the teacher's answers next to their targets.

    Args:
        windows: List of `(inputs, target)`, with the number of the label, or for regression a number; None where it is
            not known.
        answers: `(texts, labels)`, the probabilities at the temperature of the loss; `(texts, 1)` for regression.

    Returns:
        A list of `(inputs, array)`, as `LabelDistillationLoss` and `NumberDistillationLoss` take them.
    """
    targets = []
    for (inputs, target), answer in zip(windows, answers, strict=True):
        if len(answer) == 1:
            values = [0.0 if target is None else target, answer[0], float(target is not None)]
        else:
            values = [-1 if target is None else target, *answer]
        targets.append((inputs, np.array(values, "float32")))
    return targets

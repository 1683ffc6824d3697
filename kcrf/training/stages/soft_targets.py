"""The predictions of a teacher: expected counts of a tagger, softened probabilities of a classifier."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from kcrf.chains import softmax
from kcrf.distillation import SoftTags


def soften(probabilities: np.ndarray, temperature: float) -> np.ndarray:
    """Softens probabilities: the result of a softmax over the same scores, divided by a temperature.

    >>> soften(np.array([0.8, 0.2]), 2.0).round(3).tolist()  # proportional to the square roots
    [0.667, 0.333]
    """
    with np.errstate(divide="ignore"):  # the logarithm of 0 is -inf, whose exponential is 0 again
        return softmax(np.log(probabilities) / temperature)


def expected_targets(texts: Sequence[str], counts: Sequence[Any], windows: Iterable[Any]) -> list[Any]:
    """Combines the windows of a student with the expected counts of its teacher."""
    check_units(texts, [[len(expected) for expected, _ in windows_of_text] for windows_of_text in counts], windows)
    targets = []
    for (inputs, tags), (expected, steps) in zip(windows, chain.from_iterable(counts), strict=True):
        array = np.zeros((len(tags), expected.shape[1]), "float32")
        array[_unit_positions(inputs, len(tags))] = expected
        targets.append((inputs, SoftTags(tags, array, np.asarray(steps, "float32"))))
    return targets


def check_units(texts: Sequence[str], counts: Iterable[Any], windows: Iterable[Any]) -> None:
    """Checks that teacher and student split the texts into the same tokens and windows."""
    of_student = iter([len(_unit_positions(inputs, len(tags))) for inputs, tags in windows])
    for text, counts_of_text in zip(texts, counts, strict=True):
        for count in counts_of_text:
            if (other := next(of_student, 0)) != count:
                raise _other_units(text, _counted(count, other))
    if extra := next(of_student, 0):
        raise _other_units(texts[-1], _counted(0, extra))


def check_words(texts: Iterable[str], of_teacher: Iterable[Any], of_student: Iterable[Any]) -> None:
    """Checks that teacher and student split the texts into the same words: as many words may be others."""
    for text, one, other in zip(texts, of_teacher, of_student, strict=True):
        for spans in zip(one.tolist(), other.tolist(), strict=True):
            if spans[0] != spans[1]:
                teacher, student = (text[start:end] for start, end in spans)
                raise _other_units(text, f"{teacher!r} of the teacher and {student!r} of the student")


def _unit_positions(inputs: Any, length: int) -> np.ndarray:
    """The positions of the tokens in a window: all positions, except with a BERT, which also reads WordPieces."""
    return np.flatnonzero(inputs["tagged"]) if "tagged" in inputs else np.arange(length)


def _counted(teacher: int, student: int) -> str:
    return f"{teacher} tokens of the teacher and {student} of the student in a window"


def _other_units(text: str, received: str) -> ValueError:
    return ValueError(
        "`teacher` must split texts into the same tokens as the student (characters, words, or the words of one BERT "
        "tokenizer), and long texts into the same windows; a BERT and a model without BERT use different windows. "
        f"Received: {received}, at {text[:40]!r}"
    )


def join_counts(counts: Any) -> dict[str, np.ndarray]:
    """The counts of texts as a dict of arrays that can be saved; `split_counts` is the inverse."""
    windows = [window for rows in counts for window in rows]
    return {
        "windows": np.array([len(rows) for rows in counts]),
        "units": np.array([len(expected) for expected, _ in windows]),
        "tags": np.concatenate([expected for expected, _ in windows]),
        "steps": np.stack([steps for _, steps in windows]),
    }


def split_counts(arrays: Any) -> list[Any]:
    """The counts of texts from the arrays of `join_counts`."""
    tags = np.split(arrays["tags"], np.cumsum(arrays["units"])[:-1])
    windows = iter(list(zip(tags, arrays["steps"], strict=True)))
    return [[next(windows) for _ in range(count)] for count in arrays["windows"].tolist()]


def label_targets(windows: Iterable[Any], predictions: np.ndarray) -> list[Any]:
    """Combines the windows of a classifying student with the predictions of its teacher."""
    targets = []
    for (inputs, target), prediction in zip(windows, predictions, strict=True):
        if len(prediction) == 1:
            values = [0.0 if target is None else target, prediction[0], float(target is not None)]
        else:
            values = [-1 if target is None else target, *prediction]
        targets.append((inputs, np.array(values, "float32")))
    return targets

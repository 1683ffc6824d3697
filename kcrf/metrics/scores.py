"""SIGHAN's scores of words, with classes or without, conlleval's scores of entities, and calibration."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from kcrf.metrics.classes import scores_of, set_of_words
from kcrf.tags.scheme import ENTITY_TAG, spans_of_tags


class TextMismatch(ValueError):
    """Gold and prediction differ at a `line` and a `column`, counted from 1, without spaces."""

    def __init__(self, line: int, column: int, gold: str, predicted: str) -> None:
        super().__init__(
            f"line {line}, column {column}: gold and prediction must be the same text, apart from spaces. "
            f"Received: {gold!r} and {predicted!r}"
        )
        self.line, self.column = line, column


def segmentation_scores(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], training_words: Iterable[str] | None = None
) -> dict[str, Any]:
    """Computes SIGHAN's scores of word segmentation (Emerson, 2005). A word is correct if both boundaries are correct.

    Args:
        gold: A list of sentences, each a list of words.
        predicted: The predicted words of the same text, as `gold`.
        training_words: An iterable of the in-vocabulary words. Defaults to `None`.

    Returns:
        A dict of `true_words` and `test_words` (the numbers of words in gold and in the prediction), `recall`,
        `precision`, `f` (their harmonic mean) and, with `training_words`, `oov_rate`, `oov_recall`, `iv_recall`. A
        score over no words is `None`.

    Raises:
        TextMismatch: The texts differ. The message names line and column.

    >>> scores = segmentation_scores([["北京", "大学", "生"]], [["北京", "大学生"]], training_words=["北京"])
    >>> scores["recall"], scores["precision"], scores["oov_recall"], scores["iv_recall"]
    (0.3333333333333333, 0.5, 0.0, 1.0)
    """
    _check_same_number(gold, predicted, "lines")
    rows = []
    for line, (words, guesses) in enumerate(zip(gold, predicted, strict=True), 1):
        if isinstance(words, str) or isinstance(guesses, str):
            received = f"a string, {(words if isinstance(words, str) else guesses)[:40]!r}"
            raise TypeError(f"sentence {line} must be a list of words. Received: {received}; use text.split()")
        check_same_text(line, "".join(words), "".join(guesses))
        rows.append(("".join(words), list(spans_of_words(words)), list(spans_of_words(guesses))))
    return scores_of_words(rows, training_words)


def scores_of_words(rows: Iterable[tuple[str, Any, Any]], training_words: Iterable[str] | None) -> dict[str, Any]:
    """The scores of words `(start, end)`, from the text, the gold words and the predicted words of each sentence."""
    vocabulary = None if training_words is None else set_of_words(training_words)
    true_words = test_words = right = oov = right_oov = 0
    for text, gold, predicted in rows:
        found = set(predicted)
        true_words += len(gold)
        test_words += len(predicted)
        for start, end in gold:
            hit, new = (start, end) in found, vocabulary is not None and text[start:end] not in vocabulary
            right += hit
            oov += new
            right_oov += hit and new
    scores = {
        "true_words": true_words,
        "test_words": test_words,
        "recall": share(right, true_words),
        "precision": share(right, test_words),
        "f": share(2 * right, true_words + test_words),
    }
    if vocabulary is not None:
        scores["oov_rate"] = share(oov, true_words)
        scores["oov_recall"] = share(right_oov, oov)
        scores["iv_recall"] = share(right - right_oov, true_words - oov)
    return scores


def _check_same_number(gold: Sequence[Any], predicted: Sequence[Any], items: str) -> None:
    if len(gold) != len(predicted):
        received = f"{len(gold)} {items} of gold, {len(predicted)} of prediction"
        raise ValueError(f"Gold and prediction must have the same number of {items}. Received: {received}")


def check_same_text(line: int, gold: str, predicted: str) -> None:
    """Raises TextMismatch if two texts differ; `line` is the number of their sentence."""
    if gold == predicted:
        return
    pairs = enumerate(zip(gold, predicted, strict=False))
    at = next((i for i, (a, b) in pairs if a != b), min(len(gold), len(predicted)))
    raise TextMismatch(line, at + 1, gold[at : at + 10], predicted[at : at + 10])


def spans_of_words(words: Iterable[str]) -> Iterator[tuple[int, int]]:
    words = list(words)
    if "" in words:
        raise ValueError(f"Words must not be empty. Received: {words}"[:200])
    return pairwise(accumulate(map(len, words), initial=0))


def share(part: int, whole: int) -> float | None:
    """The part of a whole as a fraction, None of nothing."""
    return part / whole if whole else None


def entity_scores(gold: Sequence[Any], predicted: Sequence[Any]) -> dict[str, Any]:
    """Computes conlleval's scores of entities (Tjong Kim Sang and De Meulder, 2003).

    An entity is correct if its boundaries and its type are correct.

    Args:
        gold: For each sentence a list of spans: `(start, end, label)`, dicts with these members, or objects with these
            attributes, such as `kcrf.taggers` returns them; or a list of tags such as B-PER, as seqeval takes them.
        predicted: The predicted spans or tags, as `gold`.

    Returns:
        A dict with the counts `true_entities` (gold), `found_entities` (predicted) and `correct`; the `precision`,
        `recall` and `f` of all entities (micro average); `types`, a dict of the same six values by label; and
        `macro`, the mean over the types that occur in gold or prediction. A score over no entities is 0.0.

    Raises:
        ValueError: The numbers of sentences differ, or a sentence has something else than spans or tags, or one twice.

    >>> scores = entity_scores([[(0, 2, "PER"), (4, 6, "LOC")]], [[(0, 2, "PER"), (4, 7, "LOC"), (8, 9, "LOC")]])
    >>> scores["correct"], scores["precision"], scores["recall"], scores["f"]
    (1, 0.3333333333333333, 0.5, 0.4)
    >>> scores["types"]["LOC"]["f"], scores["macro"]["f"]
    (0.0, 0.5)
    """
    _check_same_number(gold, predicted, "sentences")
    in_gold, in_prediction, correct = Counter(), Counter(), Counter()
    for number, (spans, guesses) in enumerate(zip(gold, predicted, strict=True), 1):
        (spans, tags), (guesses, others) = _distinct(spans, number, "gold"), _distinct(guesses, number, "prediction")
        if tags and others:
            _check_same_number(tags, others, f"tags in sentence {number}")
        for counter, counted in ((in_gold, spans), (in_prediction, guesses), (correct, spans & guesses)):
            counter.update(label for _, _, label in counted)
    labels = sorted(in_gold | in_prediction)
    types = {label: _scores_of_counts(in_gold[label], in_prediction[label], correct[label]) for label in labels}
    return {
        **_scores_of_counts(in_gold.total(), in_prediction.total(), correct.total()),
        "types": types,
        "macro": {
            name: sum(scores[name] for scores in types.values()) / max(1, len(types))
            for name in ("precision", "recall", "f")
        },
    }


def _distinct(spans: Sequence[Any], number: int, name: str) -> tuple[set[tuple[int, int, str]], list[str]]:
    """The spans `(start, end, label)` of a sentence, given as spans of any kind or as tags, and the tags or nothing."""
    where = f"sentence {number} of the {name}"
    if isinstance(spans, str) or not isinstance(spans, Iterable):
        raise ValueError(f"A sentence must be a list of spans or of tags such as B-PER. Received: {spans!r} as {where}")
    spans = list(spans)
    are_tags = bool(spans) and all(isinstance(tag, str) for tag in spans)
    checked = _entities(spans, where) if are_tags else [_span(span, where) for span in spans]
    distinct = set(checked)
    if len(distinct) < len(checked):
        raise ValueError(f"A sentence must contain each span only once. Received: {spans} in {where}")
    return distinct, spans if are_tags else []


def _span(span: Any, where: str) -> tuple[int, int, str]:
    """A span as a tuple: of a tuple or list, of a dict, or of an object with these attributes."""
    if isinstance(span, Mapping):
        values: tuple[Any, ...] = tuple(span.get(name) for name in ("start", "end", "label"))
    elif hasattr(span, "start") and hasattr(span, "end"):
        values = (span.start, span.end, getattr(span, "label", None))
    else:
        values = tuple(span[:3]) if isinstance(span, (tuple, list)) and str not in map(type, span[3:]) else ()
    are_ints = len(values) == 3 and all(isinstance(x, (int, np.integer)) and x is not True for x in values[:2])
    if not are_ints or not isinstance(values[2], str):
        form = '(start, end, label), {"start": ..., "end": ..., "label": ...} or an object with these attributes'
        raise ValueError(f"A span must be {form}. Received: {span!r} in {where}")
    return int(values[0]), int(values[1]), values[2]


def _entities(tags: Sequence[str], where: str) -> list[tuple[int, int, str]]:
    """The entities of the tags of a sentence, which are checked."""
    wrong = next((tag for tag in tags if not ENTITY_TAG.fullmatch(tag)), None)
    if wrong is not None:
        raise ValueError(f"A tag must be O or one like B-PER, with one of BIESMLU. Received: {wrong!r} in {where}")
    return spans_of_tags(tags)


def _scores_of_counts(gold: int, predicted: int, correct: int) -> dict[str, Any]:
    scores = scores_of(gold, predicted, correct)
    return {"true_entities": scores.pop("true"), "found_entities": scores.pop("found"), **scores}


def calibration(confidences: Any, right: Any, bins: int = 10) -> tuple[list[Any], float | None]:
    """Measures calibration: of the items with the confidence 0.8, eight in ten should be correct.

    Args:
        confidences: Probabilities, `(items,)`.
        right: `(items,)` bool, whether each item is correct.
        bins: Number of intervals of equal width that divide [0, 1]. Defaults to 10. A border belongs to the upper one.

    Returns:
        `(rows, error)`: for each interval `(low, high, count, mean confidence, accuracy)`, the last two `None` without
        items; and the expected calibration error (Naeini et al., 2015), the mean absolute difference between confidence
        and accuracy, weighted by count, or `None` without items.

    Raises:
        ValueError: The lengths differ, or a confidence is not in [0, 1].

    >>> rows, error = calibration([0.6, 0.9, 0.9, 0.9], [True, True, True, False], bins=2)
    >>> [(low, high, count, round(mean, 3), accuracy) for low, high, count, mean, accuracy in rows if count]
    [(0.5, 1.0, 4, 0.825, 0.75)]
    >>> round(error, 3)
    0.075
    """
    confidences, right = np.asarray(confidences, "float64"), np.asarray(right, bool)
    if confidences.ndim != 1 or confidences.shape != right.shape or bins < 1:
        received = f"confidences of shape {confidences.shape}, right of shape {right.shape}, bins={bins}"
        raise ValueError(f"`calibration` needs one confidence per item, and at least one bin. Received: {received}")
    outside = ~((confidences >= 0) & (confidences <= 1))
    if outside.any():
        raise ValueError(f"Confidences must be from 0 to 1. Received: {confidences[outside][0]}")
    borders = np.arange(bins + 1) / bins
    places = np.minimum(np.searchsorted(borders, confidences, side="right") - 1, bins - 1)
    rows, error = [], 0.0
    for place, (low, high) in enumerate(zip(borders[:-1].tolist(), borders[1:].tolist())):
        inside = places == place
        count, mean, accuracy = int(inside.sum()), None, None
        if count:
            mean, accuracy = float(confidences[inside].mean()), float(right[inside].mean())
            error += count / len(right) * abs(mean - accuracy)
        rows.append((low, high, count, mean, accuracy))
    return rows, error if len(right) else None


Pairs = Sequence[Sequence[tuple[str, str | None]]]


def tagged_word_scores(gold: Pairs, predicted: Pairs, training_words: Iterable[str] | None = None) -> dict[str, Any]:
    """Computes the scores of word segmentation with classes, such as parts of speech.

    A word is correct if both boundaries are correct; a word with its class is correct if the class is correct, too.

    Args:
        gold: A list of sentences, each a list of `(word, class)`. If the class is None or "?", the word, and predicted
            words that overlap it, are not scored.
        predicted: The predicted words and classes of the same text, as `gold`.
        training_words: An iterable of the in-vocabulary words. Defaults to `None`.

    Returns:
        A dict as `segmentation_scores` returns it, with `joint_recall`, `joint_precision` and `joint_f` of words with
        their classes, and with `types`, the scores of each class as `entity_scores` returns them.

    Raises:
        TextMismatch: The texts differ. The message names line and column.

    >>> gold, predicted = [[("我", "r"), ("喜欢", "v"), ("书", "n")]], [[("我", "r"), ("喜欢", "n"), ("书", "n")]]
    >>> scores = tagged_word_scores(gold, predicted, training_words=["我", "书"])
    >>> scores["f"], round(scores["joint_f"], 3), scores["oov_recall"]
    (1.0, 0.667, 1.0)
    """
    _check_same_number(gold, predicted, "lines")
    rows = [_scored(line, *pair) for line, pair in enumerate(zip(gold, predicted, strict=True), 1)]
    joint = entity_scores([spans for _, spans, _ in rows], [spans for _, _, spans in rows])
    words = [(text, [span[:2] for span in gold], [span[:2] for span in found]) for text, gold, found in rows]
    scores = scores_of_words(words, training_words)
    scores |= {name: scores[name] or 0.0 for name in ("recall", "precision", "f")}
    scores |= {f"joint_{name}": joint[name] for name in ("recall", "precision", "f")}
    return {**scores, "types": joint["types"]}


def _scored(line: int, gold: Sequence[Any], predicted: Sequence[Any]) -> tuple[str, list[Any], list[Any]]:
    """The text of a sentence, and its spans `(start, end, class)` that are scored: of gold, of the prediction."""
    wrong = next((pair for pair in (*gold, *predicted) if isinstance(pair, str) or len(pair) != 2), None)
    if wrong is not None:
        raise ValueError(f"sentence {line} must be a list of (word, class). Received: {wrong!r:.60}")
    words, guesses = ([word for word, _ in pairs] for pairs in (gold, predicted))
    text = "".join(words)
    check_same_text(line, text, "".join(guesses))
    gold_spans, is_unknown = [], [False] * len(text)
    for (start, end), (_, label) in zip(spans_of_words(words), gold, strict=True):
        if label in (None, "?"):
            is_unknown[start:end] = [True] * (end - start)
        else:
            gold_spans.append((start, end, label))
    found = zip(spans_of_words(guesses), predicted, strict=True)
    return text, gold_spans, [(a, b, label) for (a, b), (_, label) in found if not any(is_unknown[a:b])]

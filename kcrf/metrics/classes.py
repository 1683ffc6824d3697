"""Scores of classification and regression as in GLUE (https://arxiv.org/abs/1804.07461), and of token tagging."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

CLASSIFICATION_METRICS = ("accuracy", "f", "macro_f", "matthews")  # the keys among which `--metric` chooses
REGRESSION_METRICS = ("pearson", "spearman")
_UNKNOWN = (None, "?", "-1", -1, -100)  # gold tags, of files and of Hugging Face


def classification_scores(gold: Sequence[Any], predicted: Sequence[Any], labels: Sequence[Any]) -> dict[str, Any]:
    """Computes the scores of text classification.

    Args:
        gold: The gold label of each text.
        predicted: The predicted label of each text.
        labels: All labels. If there are two, the second is the positive one.

    Returns:
        A dict of `examples` (their number), `accuracy`, `f` (F1 of the positive label, if there are two labels),
        `macro_f` (the mean F1 of the labels that occur), `matthews` (Matthews' correlation coefficient, or Gorodkin's
        R_K for more labels) and `labels`: for each label a dict of the numbers `true`, `found` and `correct`, and of
        `precision`, `recall` and `f`. A score with the denominator 0 is 0, as in scikit-learn.

    Raises:
        ValueError: The lengths differ, or a label is not in `labels`.

    >>> scores = classification_scores(["no", "yes", "yes", "no"], ["no", "yes", "no", "no"], ["no", "yes"])
    >>> scores["accuracy"], round(scores["f"], 4), round(scores["matthews"], 4)
    (0.75, 0.6667, 0.5774)
    """
    _check(gold, predicted, [*gold, *predicted], labels)
    numbers = {label: number for number, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)), np.int64)  # (gold, predicted)
    np.add.at(counts, ([numbers[label] for label in gold], [numbers[label] for label in predicted]), 1)
    totals = zip(counts.sum(axis=1).tolist(), counts.sum(axis=0).tolist(), counts.diagonal().tolist(), strict=True)
    by_label = dict(zip(labels, [scores_of(*row) for row in totals], strict=True))
    return {
        "examples": len(gold),
        "accuracy": int(np.trace(counts)) / len(gold),
        **({"f": by_label[labels[1]]["f"]} if len(labels) == 2 else {}),
        "macro_f": _macro_f(by_label),
        "matthews": _matthews(counts),
        "labels": by_label,
    }


def multilabel_scores(
    gold: Sequence[Collection[Any]], predicted: Sequence[Collection[Any]], labels: Sequence[Any]
) -> dict[str, Any]:
    """Computes the scores of texts that have several labels, or none.

    Args:
        gold: The gold labels of each text.
        predicted: The predicted labels of each text.
        labels: All labels.

    Returns:
        A dict of `examples` (their number), `accuracy` (the fraction of texts all of whose labels are right),
        `precision`, `recall` and `f` over the labels of all texts together (micro average), and `macro_f` and `labels`
        as in `classification_scores`.

    Raises:
        ValueError: The lengths differ, or a label is not in `labels`.

    >>> gold, predicted = [{"food", "staff"}, {"room"}, set()], [{"food"}, {"room"}, set()]
    >>> scores = multilabel_scores(gold, predicted, ["food", "room", "staff"])
    >>> round(scores["accuracy"], 4), scores["precision"], round(scores["recall"], 4), scores["f"]
    (0.6667, 1.0, 0.6667, 0.8)
    """
    true, found = ([{*row} for row in rows] for rows in (gold, predicted))
    _check(true, found, set().union(*true, *found), labels)
    counts = {}
    for label in labels:
        both = [(label in one, label in other) for one, other in zip(true, found, strict=True)]
        counts[label] = [sum(a for a, _ in both), sum(b for _, b in both), sum(a and b for a, b in both)]
    by_label = {label: scores_of(*row) for label, row in counts.items()}
    together = scores_of(*map(sum, zip(*counts.values(), strict=True)))
    return {
        "examples": len(true),
        "accuracy": sum(a == b for a, b in zip(true, found, strict=True)) / len(true),
        **{name: together[name] for name in ("precision", "recall", "f")},
        "macro_f": _macro_f(by_label),
        "labels": by_label,
    }


def _check(gold: Sequence[Any], predicted: Sequence[Any], given: Iterable[Any], labels: Sequence[Any]) -> None:
    if len(gold) != len(predicted) or not len(gold):
        raise ValueError(
            "Gold and prediction must have the same number of labels, at least one. "
            f"Received: {len(gold)} in gold, {len(predicted)} in the prediction"
        )
    unknown = sorted(map(str, {*given} - {*labels}))
    if unknown:
        raise ValueError(f"Labels must be in {list(labels)}. Received: {', '.join(unknown)}")


def _macro_f(by_label: Mapping[Any, Mapping[str, Any]]) -> float:
    occurring = [scores["f"] for scores in by_label.values() if scores["true"] or scores["found"]]
    return sum(occurring) / len(occurring) if occurring else 0.0


def scores_of(gold: int, predicted: int, correct: int) -> dict[str, Any]:
    """The counts and scores of a label."""
    return {
        "true": gold,
        "found": predicted,
        "correct": correct,
        "precision": correct / predicted if predicted else 0.0,
        "recall": correct / gold if gold else 0.0,
        "f": 2 * correct / (gold + predicted) if gold + predicted else 0.0,
    }


def _matthews(counts: np.ndarray) -> float:
    """The correlation of gold and prediction as indicator vectors; 0 if gold or prediction has a single label."""
    gold, predicted, total = counts.sum(1), counts.sum(0), int(counts.sum())
    covariance = int(np.trace(counts)) * total - int(gold @ predicted)
    variances = [total**2 - int(sizes @ sizes) for sizes in (gold, predicted)]
    return covariance / (variances[0] * variances[1]) ** 0.5 if all(variances) else 0.0


def regression_scores(gold: Sequence[float], predicted: Sequence[float]) -> dict[str, float]:
    """Computes the correlations of gold and predicted numbers.

    Args:
        gold: The gold number of each text.
        predicted: The predicted number of each text.

    Returns:
        A dict of `examples` (their number), `pearson`, `spearman` (equal numbers have the mean of their ranks) and
        `mean_error`, the mean absolute difference. A correlation with a constant is 0.

    Raises:
        ValueError: The lengths differ, or a number is not finite.

    >>> scores = regression_scores([1, 2, 3, 4], [1, 4, 9, 16])
    >>> round(scores["pearson"], 4), round(scores["spearman"], 4), scores["mean_error"]
    (0.9844, 1.0, 5.0)
    """
    gold_numbers, predictions = np.asarray(gold, "float64"), np.asarray(predicted, "float64")
    if gold_numbers.shape != predictions.shape or gold_numbers.ndim != 1 or not len(gold_numbers):
        raise ValueError(
            "Gold and prediction must have the same number of values, at least one. "
            f"Received: {gold_numbers.shape} in gold, {predictions.shape} in the prediction"
        )
    if not (np.isfinite(gold_numbers).all() and np.isfinite(predictions).all()):
        raise ValueError("Gold and prediction must be finite numbers. Received: a value that is NaN or infinite")
    return {
        "examples": len(gold_numbers),
        "pearson": _pearson(gold_numbers, predictions),
        "spearman": _pearson(_ranks(gold_numbers), _ranks(predictions)),
        "mean_error": float(np.abs(gold_numbers - predictions).mean()),
    }


def _pearson(x: np.ndarray, y: np.ndarray) -> float:
    if np.ptp(x) == 0 or np.ptp(y) == 0:  # differences from the mean may be rounding errors
        return 0.0
    x, y = (each - each.mean() for each in (x / np.abs(x).max(), y / np.abs(y).max()))
    return float(np.clip(x @ y / (np.linalg.norm(x) * np.linalg.norm(y)), -1, 1))


def _ranks(values: np.ndarray) -> np.ndarray:
    """The rank of each value; equal values have the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)  # the rank of the last of each group of equal values, counted from 1
    return (last - (counts - 1) / 2)[inverse]


def token_scores(
    tokens: Sequence[Sequence[str]],
    gold: Sequence[Sequence[str | None]],
    predicted: Sequence[Sequence[str]],
    training_words: Iterable[str] | None = None,
) -> dict[str, Any]:
    """Computes the scores of token tagging.

    Args:
        tokens: A list of sentences, each a list of tokens.
        gold: The gold tag of each token. Tokens whose gold tag is None, "?", -1 or -100 are not scored.
        predicted: The predicted tag of each token.
        training_words: An iterable of the tokens of the training set. Defaults to `None`.

    Returns:
        A dict of `tokens` (the number of scored tokens), `accuracy`, `macro_f` (the mean F1 of the tags), with
        `training_words` also `oov_rate`, `oov_accuracy` and `iv_accuracy` (`None` over no tokens), `labels` (as
        `classification_scores` returns it) and `confusion`: `[gold, predicted, count]`, the most frequent first.

    Raises:
        ValueError: A sentence has different numbers of tokens and tags, or no token can be scored.

    >>> scores = token_scores([["Kim", "slept"]], [["NOUN", "VERB"]], [["NOUN", "NOUN"]], training_words=["Kim"])
    >>> scores["accuracy"], scores["oov_accuracy"], scores["confusion"]
    (0.5, 0.0, [['VERB', 'NOUN', 1]])
    """
    rows = _scored_tokens(tokens, gold, predicted)
    labels = sorted({tag for _, *tags in rows for tag in tags})
    scores = classification_scores([tag for _, tag, _ in rows], [tag for *_, tag in rows], labels)
    confusion = Counter((true, tag) for _, true, tag in rows if true != tag)
    result: dict[str, Any] = {"tokens": len(rows), "accuracy": scores["accuracy"], "macro_f": scores["macro_f"]}
    if training_words is not None:
        vocabulary = set_of_words(training_words)
        unseen = [true == tag for word, true, tag in rows if word not in vocabulary]
        seen = [true == tag for word, true, tag in rows if word in vocabulary]
        result["oov_rate"] = len(unseen) / len(rows)
        result["oov_accuracy"] = sum(unseen) / len(unseen) if unseen else None
        result["iv_accuracy"] = sum(seen) / len(seen) if seen else None
    ordered = sorted(confusion.items(), key=lambda item: (-item[1], item[0]))
    return {**result, "labels": scores["labels"], "confusion": [[*pair, count] for pair, count in ordered]}


def set_of_words(training_words: Iterable[str]) -> set[str]:
    """The set of words of a training set. Raises TypeError for words in one string."""
    if isinstance(training_words, str):
        raise TypeError(f"`training_words` must be words, not a string of them. Received: {training_words[:40]!r}")
    return set(training_words)


def _scored_tokens(tokens: Any, gold: Any, predicted: Any) -> list[tuple[str, str, str]]:
    """`(token, gold tag, predicted tag)` of all tokens whose gold tag is known."""
    rows = []
    for number, sentence in enumerate(zip(tokens, gold, predicted, strict=True), 1):
        if any(isinstance(part, str) for part in sentence):
            raise TypeError(f"Each sentence must be a list of tokens, and of tags. Received: {sentence!r:.80}")
        if len(set(map(len, sentence))) > 1:
            raise ValueError(
                f"Each token needs a gold tag and a predicted tag. Received: {len(sentence[0])} tokens, "
                f"{len(sentence[1])} and {len(sentence[2])} tags in sentence {number}"
            )
        rows += [row for row in zip(*sentence, strict=True) if row[1] not in _UNKNOWN]
    if not rows:
        raise ValueError("Token tagging needs at least one token with a gold tag to score. Received: none")
    return rows

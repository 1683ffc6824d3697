"""Scores of words with their classes, such as parts of speech: of the words alone, and of both together."""

from collections.abc import Iterable, Sequence
from typing import Any

from kcrf.metrics.scores import check_same_lines, check_same_text, entity_scores, share, spans_of_words

Pairs = Sequence[Sequence[tuple[str, str | None]]]


def tagged_word_scores(gold: Pairs, predicted: Pairs, training_words: Iterable[str] | None = None) -> dict[str, Any]:
    """Computes the scores of word segmentation with classes, such as parts of speech.

    A word is correct if both boundaries are correct; a word with its class is correct if the class is correct, too.

    Args:
        gold: A list of sentences, each a list of `(word, class)`. If the class is None or "?", it is not known: the
            word, and predicted words that overlap it, are not scored.
        predicted: The predicted words and classes of the same text, as `gold`.
        training_words: An iterable of the in-vocabulary words. Defaults to `None`.

    Returns:
        A dict of `true_words` and `test_words` (the numbers of words in gold and in the prediction); `recall`,
        `precision` and `f` of words; with `training_words` also `oov_rate`, `oov_recall` and `iv_recall`;
        `joint_recall`, `joint_precision` and `joint_f` of words with their classes; and `types`, a dict of the scores
        of each class, as `entity_scores` returns it.

    Raises:
        TextMismatch: The texts differ. The message names line and column.

    >>> gold, predicted = [[("我", "r"), ("喜欢", "v"), ("书", "n")]], [[("我", "r"), ("喜欢", "n"), ("书", "n")]]
    >>> scores = tagged_word_scores(gold, predicted, training_words=["我", "书"])
    >>> scores["f"], round(scores["joint_f"], 3), scores["oov_recall"]
    (1.0, 0.667, 1.0)
    """
    check_same_lines(gold, predicted)
    rows = [_scored(line, *pair) for line, pair in enumerate(zip(gold, predicted, strict=True), 1)]
    joint = entity_scores([gold_spans for gold_spans, _ in rows], [predicted_spans for _, predicted_spans in rows])
    words = entity_scores(*([[(start, end, "") for start, end, _ in row[side]] for row in rows] for side in (0, 1)))
    scores = {"true_words": words["true_entities"], "test_words": words["found_entities"]}
    scores |= {name: words[name] for name in ("recall", "precision", "f")}
    if training_words is not None:
        scores |= _by_vocabulary(gold, rows, set(training_words))
    scores |= {f"joint_{name}": joint[name] for name in ("recall", "precision", "f")}
    return {**scores, "types": joint["types"]}


def _scored(line: int, gold: Sequence[Any], predicted: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The spans `(start, end, class)` of a sentence that are scored, of gold and of the prediction."""
    words, guesses = ([word for word, _ in pairs] for pairs in (gold, predicted))
    check_same_text(line, "".join(words), "".join(guesses))
    extents = list(spans_of_words(words))
    gold_spans = [
        (*extent, label) for extent, (_, label) in zip(extents, gold, strict=True) if label not in (None, "?")
    ]
    is_unknown = [False] * len("".join(words))
    for (start, end), (_, label) in zip(extents, gold, strict=True):
        is_unknown[start:end] = [label in (None, "?")] * (end - start)
    predicted_words = zip(spans_of_words(guesses), predicted, strict=True)
    return gold_spans, [
        (start, end, label) for (start, end), (_, label) in predicted_words if not any(is_unknown[start:end])
    ]


def _by_vocabulary(gold: Pairs, rows: Sequence[tuple[list[Any], list[Any]]], vocabulary: set[str]) -> dict[str, Any]:
    """The rate of words that the vocabulary lacks, and the recall of these words and of the others."""
    totals, right = {True: 0, False: 0}, {True: 0, False: 0}
    for pairs, (gold_spans, predicted_spans) in zip(gold, rows, strict=True):
        text, predicted_words = "".join(word for word, _ in pairs), {(start, end) for start, end, _ in predicted_spans}
        for start, end, _ in gold_spans:
            is_new = text[start:end] not in vocabulary
            totals[is_new] += 1
            right[is_new] += (start, end) in predicted_words
    return {
        "oov_rate": share(totals[True], totals[True] + totals[False]),
        "oov_recall": share(right[True], totals[True]),
        "iv_recall": share(right[False], totals[False]),
    }

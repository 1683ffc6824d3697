"""Scores: SIGHAN's of word segmentation, and what a transition matrix has learnt. Needs NumPy only."""

import numpy as np

__all__ = ["TextMismatch", "segmentation_scores", "transition_report"]


class TextMismatch(ValueError):
    """Gold and prediction are not the same text.

    Attributes:
        line: Which sentence, counted from 1.
        column: At which of its characters they differ first, counted from 1, blanks left out.
    """

    def __init__(self, line, column, gold, predicted):
        super().__init__(
            f"line {line}, column {column}: gold and prediction must be the same text, blanks aside. "
            f"Received: {gold!r} and {predicted!r}"
        )
        self.line, self.column = line, column


def segmentation_scores(gold, predicted, training_words=None):
    """SIGHAN's figures for word segmentation (Emerson, 2005): a word counts when both its ends are right.

    Args:
        gold: List of sentences, each a list of words.
        predicted: As `gold`, the same text in other words.
        training_words: The words that count as known, any iterable, or None.

    Returns:
        A dict of `true_words` and `test_words` (how many are in gold and in the prediction), `recall`, `precision`,
        `f` (their harmonic mean) and, with `training_words`, `oov_rate`, `oov_recall`, `iv_recall`. A share of nothing
        is None.

    Raises:
        TextMismatch: The texts differ; names line and column.

    >>> scores = segmentation_scores([["北京", "大学", "生"]], [["北京", "大学生"]], training_words=["北京"])
    >>> scores["recall"], scores["precision"], scores["oov_recall"], scores["iv_recall"]
    (0.3333333333333333, 0.5, 0.0, 1.0)
    """
    if len(gold) != len(predicted):
        raise ValueError(
            "Gold and prediction must have one line for each other. "
            f"Received: {len(gold)} lines of gold, {len(predicted)} of prediction"
        )
    known = None if training_words is None else set(training_words)
    true_words = test_words = right = oov = right_oov = 0
    for line, (words, guesses) in enumerate(zip(gold, predicted, strict=True), 1):
        _check_text(line, "".join(words), "".join(guesses))
        found = set(_spans(guesses))
        true_words += len(words)
        test_words += len(guesses)
        for word, span in zip(words, _spans(words), strict=True):
            hit, new = span in found, known is not None and word not in known
            right += hit
            oov += new
            right_oov += hit and new
    scores = {
        "true_words": true_words,
        "test_words": test_words,
        "recall": _share(right, true_words),
        "precision": _share(right, test_words),
        "f": _share(2 * right, true_words + test_words),
    }
    if known is not None:
        scores["oov_rate"] = _share(oov, true_words)
        scores["oov_recall"] = _share(right_oov, oov)
        scores["iv_recall"] = _share(right - right_oov, true_words - oov)
    return scores


def _check_text(line, gold, predicted):
    if gold == predicted:
        return
    pairs = enumerate(zip(gold, predicted, strict=False))
    at = next((i for i, (a, b) in pairs if a != b), min(len(gold), len(predicted)))
    raise TextMismatch(line, at + 1, gold[at : at + 10], predicted[at : at + 10])


def _spans(words):
    end = 0
    for word in words:
        start, end = end, end + len(word)
        yield start, end


def _share(part, whole):
    return part / whole if whole else None


def transition_report(transitions, scheme, emissions):
    """Whether a CRF's transition matrix has learnt anything.

    Args:
        transitions: `(tags, tags)`, `[i, j]` from tag i to tag j.
        scheme: The `TagScheme` that says which transitions are legal.
        emissions: `(positions, tags)` scores of real positions.

    Returns:
        A dict of `illegal_above_legal`, how many illegal transitions score above a legal one out of the same tag;
        `illegal`, how many there are; `size`, the standard deviation of the transitions; `gap`, the median distance of
        a position's best two emission scores; `ratio`, size / gap.

    >>> from kcrf.tags import bio
    >>> report = transition_report([[0, 0, 9], [0, 0, 0], [0, 0, 0]], bio(["X"]), [[3.0, 1.0, 0.0]])
    >>> report["illegal_above_legal"], report["illegal"], report["gap"]
    (1, 1, 2.0)
    """
    transitions, emissions = np.asarray(transitions, "float64"), np.asarray(emissions, "float64")
    legal = scheme.allowed_transitions
    lowest_legal = np.min(np.where(legal, transitions, np.inf), axis=1, keepdims=True)
    best, second = -np.sort(-emissions, axis=1)[:, :2].T
    size, gap = float(np.std(transitions)), float(np.median(best - second))
    return {
        "illegal_above_legal": int(np.sum(~legal & (transitions > lowest_legal))),
        "illegal": int(np.sum(~legal)),
        "size": size,
        "gap": gap,
        "ratio": size / gap if gap else None,
    }

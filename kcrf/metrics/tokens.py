"""Scores of token tagging: a class for each token, such as its part of speech."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from kcrf.metrics.classes import classification_scores


def token_scores(
    tokens: Sequence[Sequence[str]],
    gold: Sequence[Sequence[str | None]],
    predicted: Sequence[Sequence[str]],
    training_words: Iterable[str] | None = None,
) -> dict[str, Any]:
    """Computes the scores of token tagging.

    Args:
        tokens: A list of sentences, each a list of tokens.
        gold: The gold tag of each token. Tokens whose gold tag is None or "?" are not scored.
        predicted: The predicted tag of each token.
        training_words: An iterable of the tokens of the training set. Defaults to `None`.

    Returns:
        A dict of `tokens` (the number of scored tokens), `accuracy`, `macro_f` (the mean F1 of the tags), with
        `training_words` also `oov_rate`, `oov_accuracy` and `iv_accuracy` (of tokens that the training set lacks, and
        of the others; `None` over no tokens), `labels` (as `classification_scores` returns it) and `confusion`: a list
        of `[gold, predicted, count]`, the most frequent first.

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
    result = {"tokens": len(rows), "accuracy": scores["accuracy"], "macro_f": scores["macro_f"]}
    if training_words is not None:
        result |= _by_vocabulary(rows, set(training_words))
    ordered = sorted(confusion.items(), key=lambda item: (-item[1], item[0]))
    return {**result, "labels": scores["labels"], "confusion": [[*pair, count] for pair, count in ordered]}


def _scored_tokens(tokens: Any, gold: Any, predicted: Any) -> list[tuple[str, str, str]]:
    """`(token, gold tag, predicted tag)` of all tokens whose gold tag is known."""
    rows = []
    for number, sentence in enumerate(zip(tokens, gold, predicted, strict=True), 1):
        if len(set(map(len, sentence))) > 1:
            raise ValueError(
                f"Each token needs a gold tag and a predicted tag. Received: {len(sentence[0])} tokens, "
                f"{len(sentence[1])} and {len(sentence[2])} tags in sentence {number}"
            )
        rows += [row for row in zip(*sentence, strict=True) if row[1] not in (None, "?")]
    if not rows:
        raise ValueError("Token tagging needs at least one token with a gold tag to score. Received: none")
    return rows


def _by_vocabulary(rows: Sequence[tuple[str, str, str]], vocabulary: set[str]) -> dict[str, Any]:
    unseen = [true == tag for word, true, tag in rows if word not in vocabulary]
    seen = [true == tag for word, true, tag in rows if word in vocabulary]
    return {
        "oov_rate": len(unseen) / len(rows),
        "oov_accuracy": sum(unseen) / len(unseen) if unseen else None,
        "iv_accuracy": sum(seen) / len(seen) if seen else None,
    }

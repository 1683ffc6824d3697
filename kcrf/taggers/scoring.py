"""Scores predicted spans by the tag scheme: words, words with classes, entities or tokens. Needs NumPy only."""

from collections.abc import Sequence
from typing import Any

from kcrf.corpora import Sentence
from kcrf.corpora.tagged import tags_of_tokens
from kcrf.metrics import entity_scores, segmentation_scores, tagged_word_scores, token_scores
from kcrf.tags import TagScheme


def score_spans(
    scheme: TagScheme, sentences: Sequence[Sentence], predicted: Sequence[Any], training_words: set[str] | None = None
) -> dict[str, Any]:
    """The scores of predicted spans."""
    if scheme.is_of_tokens:
        tokens, gold_classes, predicted_classes = _by_token(sentences, predicted)
        return token_scores(tokens, gold_classes, predicted_classes, training_words)
    if scheme.is_of_words and scheme.types:
        return tagged_word_scores(*_words_with_classes(sentences, predicted), training_words)
    if scheme.types:
        scored = [sentence.scored(spans) for sentence, spans in zip(sentences, predicted, strict=True)]
        return entity_scores([sentence.spans for sentence in sentences], scored)
    gold, words = (
        [[s.text[start:end] for start, end in spans] for s, spans in zip(sentences, spans_of_part, strict=True)]
        for spans_of_part in ([sentence.spans for sentence in sentences], predicted)
    )
    return segmentation_scores(gold, words, training_words)


def _by_token(sentences: Sequence[Sentence], predicted: Sequence[Any]) -> tuple[list, list, list]:
    """For each sentence, lists of the tokens with a known class, their gold classes and the predicted classes."""
    tokens = [[sentence.text[start:end] for start, end, _ in sentence.spans] for sentence in sentences]
    gold = [[label for *_, label in sentence.spans] for sentence in sentences]
    by_place = [{(start, end): label for start, end, label in spans} for spans in predicted]
    rows = zip(sentences, by_place, strict=True)
    return tokens, gold, [[labels.get((start, end), "?") for start, end, _ in s.spans] for s, labels in rows]


def _words_with_classes(sentences: Sequence[Sentence], predicted: Sequence[Any]) -> tuple[list, list]:
    """For each sentence the gold `(word, class)`, with "?" for an unknown class, and the predicted ones."""
    gold = [[(s.text[a:b], tag) for (a, b), tag in zip(s.tokens, tags_of_tokens(s), strict=True)] for s in sentences]
    return gold, [[(s.text[a:b], tag) for a, b, tag in spans] for s, spans in zip(sentences, predicted, strict=True)]

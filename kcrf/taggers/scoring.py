"""Scores predicted spans by the tag scheme: words, words with classes, entities or tokens. Needs NumPy only."""

from collections.abc import Sequence
from typing import Any

from kcrf.corpora import Sentence
from kcrf.corpora.tagged import words_and_tags
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
        found = [
            list(zip(sentence.texts_of(spans), [label for *_, label in spans], strict=True))
            for sentence, spans in zip(sentences, predicted, strict=True)
        ]
        return tagged_word_scores(list(map(words_and_tags, sentences)), found, training_words)
    if scheme.types:
        scored = [sentence.scored(spans) for sentence, spans in zip(sentences, predicted, strict=True)]
        return entity_scores([sentence.spans for sentence in sentences], scored)
    words = [sentence.texts_of(spans) for sentence, spans in zip(sentences, predicted, strict=True)]
    return segmentation_scores([sentence.texts_of(sentence.spans) for sentence in sentences], words, training_words)


def _by_token(sentences: Sequence[Sentence], predicted: Sequence[Any]) -> tuple[list, list, list]:
    """For each sentence, lists of the tokens with a known class, their gold classes and the predicted classes."""
    tokens, gold, found = [], [], []
    for sentence, spans in zip(sentences, predicted, strict=True):
        labels = {(start, end): label for start, end, label in spans}
        tokens.append(sentence.texts_of(sentence.spans))
        gold.append([label for *_, label in sentence.spans])
        found.append([labels.get((start, end), "?") for start, end, _ in sentence.spans])
    return tokens, gold, found

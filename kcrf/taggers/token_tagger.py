"""Predicts a class for each token of a sentence, such as its part of speech."""

from collections.abc import Callable, Iterable
from os import PathLike
from typing import Any

import numpy as np

from kcrf.corpora import Sentence
from kcrf.taggers.decoding import ignore
from kcrf.taggers.open_model import load_tagger
from kcrf.taggers.suggestions import Suggester
from kcrf.taggers.text_input import as_list, as_text_input
from kcrf.taggers.uncertainty import DEFAULT_STRATEGY, measure_of, score_of

_NO_CLASS = "?"  # of a token without a unit


class TokenTagger(Suggester[list[str]]):
    """Predicts a class for each token with the model of a run folder, in sentences of any length.

    Args:
        run_dir: A folder that `kcrf train --task pos` wrote, or a file that `kcrf export` wrote.

    Attributes:
        classes: The classes, a tuple.

    Raises:
        FileNotFoundError: `run_dir` is not a run folder, or a file is missing.
        ValueError: `run_dir` was written by a newer version or for another task, or a file in it is damaged.

    Example:

        >>> tagger = TokenTagger("runs/pos")                            # doctest: +SKIP
        >>> tagger.tag(["Kim", "slept"])                                # doctest: +SKIP
        ['PROPN', 'VERB']
        >>> tagger.tag_with_confidence(["Kim", "slept"])               # doctest: +SKIP
        [('PROPN', 0.99), ('VERB', 0.98)]
    """

    def __init__(self, run_dir: str | PathLike[str]) -> None:
        self._tagger = load_tagger(run_dir, ["pos"])
        self.classes: tuple[str, ...] = self._tagger.scheme.types

    def tag(self, tokens: Any) -> list[str]:
        """Predicts the class of each token of a sentence.

        Args:
            tokens: A list of strings, or a `kcrf.corpora.Sentence` with tokens.

        Returns:
            A list of strings. The class is "?" for a token that a BERT's tokenizer removes, such as a control
            character.

        Raises:
            TypeError: `tokens` is a string.
            ValueError: A token is not a string, or is empty.
        """
        return self.tag_batch([tokens])[0]

    def tag_with_confidence(self, tokens: Any) -> list[tuple[str, float]]:
        """Predicts the class of each token of a sentence, and returns each class with its posterior probability.

        Args:
            tokens: As for `tag`.

        Returns:
            A list of `(class, probability)`. The probability of the class "?" is 0.

        Raises:
            TypeError, ValueError: As for `tag`.
        """
        return self.tag_batch_with_confidence([tokens])[0]

    def tag_batch(
        self, sentences: Iterable[Any], batch_size: int = 64, on_batch: Callable[[int], object] = ignore
    ) -> list[list[str]]:
        """Predicts the classes of the tokens of several sentences.

        Args:
            sentences: Iterable of sentences as for `tag`.
            batch_size: Number of windows of up to 128 positions per batch. Defaults to 64.
            on_batch: Called after each batch with the number of characters that have been tagged.

        Returns:
            A list with the result of `tag` for each sentence.
        """
        texts, tokens = _texts_and_tokens(sentences)
        spans = self._tagger.spans(texts, batch_size, on_batch, tokens=tokens)
        classes = [{(start, end): label for start, end, label in spans_of_text} for spans_of_text in spans]
        return [
            [by_place.get(tuple(token), _NO_CLASS) for token in tokens_of_text]
            for tokens_of_text, by_place in zip(tokens, classes, strict=True)
        ]

    def tag_batch_with_confidence(
        self, sentences: Iterable[Any], batch_size: int = 64, on_batch: Callable[[int], object] = ignore
    ) -> list[list[tuple[str, float]]]:
        """A list with the result of `tag_with_confidence` for each sentence; the arguments are as for `tag_batch`."""
        texts, tokens = _texts_and_tokens(sentences)
        spans = self._tagger.spans_with_confidence(texts, batch_size, on_batch, tokens=tokens)
        classes = [{(start, end): (label, p) for start, end, label, p in spans_of_text} for spans_of_text in spans]
        return [
            [by_place.get(tuple(token), (_NO_CLASS, 0.0)) for token in tokens_of_text]
            for tokens_of_text, by_place in zip(tokens, classes, strict=True)
        ]

    def uncertainties(
        self,
        texts: Iterable[Any],
        strategy: str = DEFAULT_STRATEGY,
        batch_size: int = 64,
        on_batch: Callable[[int], object] = ignore,
    ) -> np.ndarray:
        """How uncertain the model is about each sentence, an array; the arguments are as for `suggest`."""
        sentences, tokens = _texts_and_tokens(texts, "suggest")
        measure = measure_of(strategy)
        return score_of(strategy, *self._tagger.uncertainties(sentences, measure, batch_size, on_batch, tokens=tokens))

    def _predictions(self, texts, batch_size):
        return self.tag_batch(texts, batch_size)

    def _plain_text(self, text):
        return _text_input(text).text


def _texts_and_tokens(sentences, method="tag"):
    """The texts of sentences as for `TokenTagger.tag`, and their tokens."""
    inputs = list(map(_text_input, as_list(sentences, method)))
    return [item.text for item in inputs], [item.tokens for item in inputs]


def _text_input(item):
    """The `TextInput` of a list of tokens, or of a `Sentence`."""
    if isinstance(item, str):
        raise TypeError(f"`tokens` must be a list of strings; split the text into tokens. Received: {item[:40]!r}")
    text_input = as_text_input(item)
    if isinstance(item, Sentence) and item.text.strip() and not item.tokens:
        raise ValueError(f"a Sentence needs tokens to be tagged. Received: {item.text[:40]!r} without tokens")
    return text_input

"""`EntityRecognizer`: recognizes entities in texts, with probabilities and the k best analyses."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from kcrf.taggers.decoding import ignore
from kcrf.taggers.k_best_tagger import KBestTagger
from kcrf.taggers.open_model import load_tagger
from kcrf.taggers.span_constraints import SpanConstraints, check_spans
from kcrf.taggers.suggestions import Suggester
from kcrf.taggers.text_input import as_list, as_text_input, one_per_text
from kcrf.taggers.uncertainty import DEFAULT_STRATEGY, measure_of, score_of


@dataclass(frozen=True)
class Entity:
    """An entity in a text.

    Attributes:
        start, end: The span `[start, end)`, in characters of a text or in tokens of a list of tokens.
        label: The entity type.
        text: The text of the entity.
        confidence: The posterior probability that this span is an entity of this type. None in the results of `k_best`,
            where one probability applies to all entities together.
    """

    start: int
    end: int
    label: str
    text: str
    confidence: float | None = None


class EntityRecognizer(KBestTagger[list[Entity]], Suggester[list[Entity]]):
    """Recognizes named entities in texts of any length.

    Args:
        run_dir: A folder that `kcrf train --task ner` wrote, or a file that `kcrf export` wrote.
        min_probability: Return every entity with at least this posterior probability, and among overlapping entities
            the most confident one. Above 0 and below 1; lower values favor recall. Defaults to None: the setting of
            the run, or if it has none, the entities on the best path.

    Raises:
        FileNotFoundError: `run_dir` is not a run folder, or a file is missing.
        ValueError: `run_dir` was written by a newer version or for another task, or a file in it is damaged; or
            `min_probability` is out of range.

    Example:

        >>> recognizer = EntityRecognizer("runs/people")            # doctest: +SKIP
        >>> recognizer.recognize("李雷住在上海。")                   # doctest: +SKIP
        [Entity(start=0, end=2, label='PER', text='李雷', confidence=0.98), ...]

    A word-level model splits a text into tokens. If you already have the tokens, pass them as a list of strings, or as
    a `kcrf.corpora.Sentence` with its tokens. Entities then begin and end at token boundaries.

        >>> recognizer = EntityRecognizer("runs/english")           # doctest: +SKIP
        >>> recognizer.recognize(["Kim", "lives", "in", "Leeds"])   # doctest: +SKIP
        [Entity(start=0, end=1, label='PER', text='Kim', confidence=0.97), ...]
    """

    def __init__(self, run_dir: str | PathLike[str], min_probability: float | None = None) -> None:
        if min_probability is not None and not 0 < min_probability < 1:
            raise ValueError(f"`min_probability` must be above 0 and below 1. Received: {min_probability!r}")
        self._tagger = load_tagger(run_dir, ["ner"])
        if min_probability is not None:
            self._tagger.min_probability = min_probability

    def recognize(self, text: Any, spans: Iterable[tuple[int, int, str]] = ()) -> list[Entity]:
        """Recognizes the entities of a text.

        Args:
            text: A string of any length, a list of tokens, or a `kcrf.corpora.Sentence`, whose tokens are used.
            spans: Entities that you already know, as `(start, end, label)` in characters of the text, or in tokens of
                the list. The other entities and all probabilities are predicted given these entities. Defaults to no
                entities.

        Returns:
            A list of `Entity` from left to right.

        Raises:
            ValueError: Spans overlap, are not in the text, or have a label that the model lacks.
        """
        return self.recognize_batch([text], spans=[spans])[0]

    def recognize_batch(
        self,
        texts: Iterable[Any],
        batch_size: int = 64,
        on_batch: Callable[[int], object] = ignore,
        spans: Iterable[Iterable[tuple[int, int, str]]] | None = None,
    ) -> list[list[Entity]]:
        """Recognizes the entities of several texts.

        Args:
            texts: Iterable of texts as for `recognize`.
            batch_size: Number of windows of up to 128 positions per batch. Defaults to 64.
            on_batch: Called after each batch with the number of characters that have been tagged.
            spans: For each text, the `spans` of `recognize`. Defaults to None: no spans.

        Returns:
            A list with the result of `recognize` for each text.
        """
        inputs = list(map(as_text_input, as_list(texts, "recognize")))
        texts, tokens = [item.text for item in inputs], [item.tokens for item in inputs]
        constraints = self._constraints(inputs, spans)
        spans_of_texts = self._tagger.spans_with_confidence(texts, batch_size, on_batch, constraints, tokens)
        return list(map(entities_of, inputs, spans_of_texts))

    def _constraints(self, inputs, spans):
        types, spans = self._tagger.scheme.types, one_per_text(spans, inputs)
        return [
            SpanConstraints(_given_entities(item, check_spans(text_spans, item, types)), [])
            for item, text_spans in zip(inputs, spans, strict=True)
        ]

    def k_best(
        self, text: Any, k: int = 5, spans: Iterable[tuple[int, int, str]] = ()
    ) -> list[tuple[list[Entity], float]]:
        """The k best analyses of a text.

        Args:
            text: As for `recognize`.
            k: The number of analyses. Defaults to 5.
            spans: As for `recognize`. Defaults to no entities.

        Returns:
            A list of at most k `(entities, probability)`, best first.
        """
        return self.k_best_batch([text], k, spans=[spans])[0]

    def k_best_batch(
        self,
        texts: Iterable[Any],
        k: int = 5,
        batch_size: int = 64,
        on_batch: Callable[[int], object] = ignore,
        spans: Iterable[Iterable[tuple[int, int, str]]] | None = None,
    ) -> list[list[tuple[list[Entity], float]]]:
        """A list with the result of `k_best` for each text; the other arguments are as for `recognize_batch`."""
        inputs = list(map(as_text_input, as_list(texts, "k_best")))
        texts, tokens = [item.text for item in inputs], [item.tokens for item in inputs]
        analyses = self._tagger.k_best(texts, k, batch_size, on_batch, self._constraints(inputs, spans), tokens)
        return [
            [(entities_of(item, spans), p) for spans, p in best] for item, best in zip(inputs, analyses, strict=True)
        ]

    def uncertainties(
        self,
        texts: Iterable[Any],
        strategy: str = DEFAULT_STRATEGY,
        batch_size: int = 64,
        on_batch: Callable[[int], object] = ignore,
    ) -> np.ndarray:
        """How uncertain the model is about each text, an array; the arguments are as for `suggest`."""
        inputs = list(map(as_text_input, as_list(texts, "suggest")))
        texts, tokens = [item.text for item in inputs], [item.tokens for item in inputs]
        measure = measure_of(strategy)
        return score_of(strategy, *self._tagger.uncertainties(texts, measure, batch_size, on_batch, tokens=tokens))

    def _predictions(self, texts, batch_size):
        return self.recognize_batch(texts, batch_size)

    def _plain_text(self, text):
        return as_text_input(text).text


def _given_entities(source, spans):
    """The given entities of a `TextInput`, in characters. Raises ValueError if one is white space alone."""
    found = source.in_characters(spans)
    for given, (start, end, _) in zip(spans, found, strict=True):
        if source.text[start:end].isspace():
            raise ValueError(f"`spans` must not be white space alone. Received: {given!r} in {source.text!r}")
    return found


def entities_of(source, spans):
    """The `Entity` of each span in characters of a `TextInput`, except for spans of white space between tokens."""
    spans = [span for span in spans if not source.text[slice(*span[:2])].isspace()]
    return [
        Entity(start, end, label, source.text[slice(*span[:2])], *confidences)
        for span, (start, end, label, *confidences) in zip(spans, source.as_counted(spans), strict=True)
    ]

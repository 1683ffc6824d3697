"""Tags texts with a trained model: spans, their probabilities, the k best analyses, scores. Needs no Keras."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from kcrf.corpora import Sentence
from kcrf.corpora.offsets import trimmed_span
from kcrf.networks.network import TaggingNetwork
from kcrf.readers import Reader, spans_of_units
from kcrf.readers.padding import inference_batches
from kcrf.readers.units import Reading
from kcrf.taggers.confidences import (
    entity_confidences,
    most_variants,
    possible_spans,
    span_confidences,
    without_blanks,
    without_overlaps,
    word_confidences,
)
from kcrf.taggers.k_best import best_of_window, join_windows
from kcrf.taggers.k_best_tagger import probability_first, warn_of_confidence
from kcrf.taggers.scoring import score_spans
from kcrf.taggers.span_constraints import SpanConstraints, allowed_tags, in_units, write_tags
from kcrf.taggers.uncertainty import Measure, path_entropies

_WHITE_SPACE = re.compile(r"\s")
_SEQUENCES_OF_A_RESULT = 8  # where several tag sequences give the same result

OnBatch = Callable[[int], object]
Readings = Sequence[Reading]
SpanLists = list[list[Any]]  # of each text
Batch = tuple[list[Any], Any, np.ndarray]  # windows, scores, paths
Network = TypeVar("Network", bound=TaggingNetwork, covariant=True)


def ignore(characters: int) -> None:
    """The default of `on_batch`: does nothing."""


def texts_and_tokens(sentences: Sequence[Sentence]) -> tuple[list[str], list[Any]]:
    """The texts of sentences, and their tokens."""
    return [sentence.text for sentence in sentences], [sentence.tokens for sentence in sentences]


class Tagger(Generic[Network]):
    """Predicts the spans of texts with a network, a reader and a tag scheme.

    A span is `(start, end)` for a word, and `(start, end, label)` for an entity, or for a word or token with its class:
    half-open, in characters. Words cover the text. Texts to be segmented must not contain white space.

    Predicted entities follow the tag scheme, even if the model was trained without constraints: no entity begins with
    an I. They have no white space at their edges, but for those that constraints ask for. Probabilities are those of
    the model, which may give other tag sequences a probability above 0.

    A softmax head is decoded as a CRF whose transitions are 0. The probability of a span is then the product of the
    probabilities of its tags and, for BIO, of the probability that no I follows.

    Args:
        network: A `kcrf.networks.network.TaggingNetwork`. A `KerasTagger` has the methods that need a Keras model.
        reader: The `CharacterReader`, `WordReader` or `PieceReader` of its inputs.
        min_probability: For entities. If a number, the tagger returns every entity with at least this posterior
            probability, and among overlapping entities the most confident one. The expected F1 is highest at a
            threshold of about half of the best F1 (Lipton et al., 2014, "Optimal Thresholding of Classifiers to
            Maximize F1 Measure"). Defaults to None: the entities on the best path.
        advice, metric: The attributes of the same names. Default to None: no advice, and the usual score.

    Attributes:
        scheme: The `TagScheme` of the network.
        metric: The score by which the best epoch is chosen. By default "f", for classes of tokens "accuracy", for words
            with classes "joint_f".
        has_word_classes: Whether spans are words with their classes.
        advice: After training, one sentence about the transitions of the CRF, as `kcrf.metrics.advice` returns it. None
            without a CRF and after loading.
    """

    def __init__(
        self,
        network: Network,
        reader: Any,
        min_probability: float | None = None,
        advice: str | None = None,
        metric: str | None = None,
    ) -> None:
        self.network = network
        self.reader: Reader = reader
        self.min_probability, self.advice = min_probability, advice
        self.scheme = network.scheme
        self.has_word_classes = self.scheme.is_of_words and bool(self.scheme.types)
        self._has_entities = not (self.scheme.is_of_words or self.scheme.is_of_tokens)
        usual = "accuracy" if self.scheme.is_of_tokens else "joint_f" if self.has_word_classes else "f"
        self.metric = metric or usual

    def spans(
        self,
        texts: Sequence[str],
        batch_size: int = 64,
        on_batch: OnBatch = ignore,
        confidence: bool = False,
        constraints: Sequence[SpanConstraints] | None = None,
        tokens: Sequence[Any] | None = None,
        classes: bool = True,
    ) -> SpanLists:
        """The spans of each text.

        Args:
            texts: List of strings of any length.
            batch_size: Number of windows of up to 128 positions per batch. Defaults to 64.
            on_batch: Called after each batch with the number of characters that have been tagged.
            confidence: Deprecated: use `spans_with_confidence`, whose result True returns. Defaults to False.
            constraints: For each text a `SpanConstraints` in characters. The other spans and all probabilities are
                conditioned on them. Defaults to None: no constraints.
            tokens: For each text a list of the `(start, end)` of its tokens, in characters, for a word-level model.
                Defaults to None: the model splits the texts into tokens.
            classes: For words with classes: whether the spans have the classes. Defaults to True.

        Returns:
            For each text a list of `(start, end)` or `(start, end, label)`.
        """
        if confidence:
            warn_of_confidence("spans")
            return self.spans_with_confidence(texts, batch_size, on_batch, constraints, tokens, classes)
        readings = self.reader.read(texts, tokens)
        limits = self._in_units(texts, readings, constraints)
        batches = self._decode(texts, readings, batch_size, on_batch, limits, self.min_probability is not None)
        if self.min_probability is not None:
            spans, _ = self._likely_spans(texts, readings, batches, limits, self.min_probability)
        else:
            spans = self._best_spans(readings, batches, limits)
        found = self._in_characters(texts, readings, spans, classes)
        return self._trimmed(texts, found, constraints)

    def spans_with_confidence(
        self,
        texts: Sequence[str],
        batch_size: int = 64,
        on_batch: OnBatch = ignore,
        constraints: Sequence[SpanConstraints] | None = None,
        tokens: Sequence[Any] | None = None,
        classes: bool = True,
    ) -> SpanLists:
        """The spans of each text, with their posterior probabilities.

        Args:
            texts, batch_size, on_batch, constraints, tokens: As for `spans`.
            classes: For words with classes: whether the spans have the classes. Without them, the probability of a word
                is the sum over all classes. Defaults to True.

        Returns:
            For each text a list of `(start, end, probability)` or `(start, end, label, probability)`.
        """
        readings = self.reader.read(texts, tokens)
        limits = self._in_units(texts, readings, constraints)
        batches = self._decode(texts, readings, batch_size, on_batch, limits)
        if self.min_probability is not None:
            spans_in_units, confidences = self._likely_spans(texts, readings, batches, limits, self.min_probability)
        else:
            spans_in_units, confidences = self._best_spans_and_confidences(texts, readings, batches, limits, classes)
        # A text without units may still be a word; its probability is 1.
        found = [
            [(*span, p) for span, p in zip(spans, confidences_of_text or [1.0])]
            for spans, confidences_of_text in zip(
                self._in_characters(texts, readings, spans_in_units, classes), confidences, strict=True
            )
        ]
        return self._trimmed(texts, found, constraints)

    def _in_characters(
        self, texts: Sequence[str], readings: Readings, spans_in_units: SpanLists, classes: bool
    ) -> SpanLists:
        spans_of_texts = [
            spans_of_units(self.scheme, reading.units, spans, len(text))
            for text, reading, spans in zip(texts, readings, spans_in_units, strict=True)
        ]
        return spans_of_texts if classes else [[span[:2] for span in spans] for spans in spans_of_texts]

    def _trimmed(
        self, texts: Sequence[str], spans: SpanLists, constraints: Sequence[SpanConstraints | None] | None
    ) -> SpanLists:
        """The spans of each text, in characters, without white space at the edges of entities, as gold entities are."""
        if not self._has_entities:
            return spans
        return list(map(_trimmed, texts, spans, constraints or [None] * len(texts)))

    def _in_units(
        self, texts: Sequence[str], readings: Readings, constraints: Sequence[SpanConstraints] | None = None
    ) -> list[Any]:
        """The constraints in units of the model; None for each text without constraints."""
        if constraints is None:
            return [None] * len(texts)
        return [
            in_units(self.scheme, reading.units, constraint, len(text)) if any(constraint) else None
            for text, reading, constraint in zip(texts, readings, constraints, strict=True)
        ]

    def _best_spans(self, readings: Readings, batches: Iterable[Batch], constraints: Sequence[Any]) -> SpanLists:
        """The spans of the best path of each text, in units."""
        tags = [[0] * len(reading.units) for reading in readings]
        for windows, _, paths in batches:
            for (number, window), path in zip(windows, paths, strict=True):
                tags[number][slice(*window.keep)] = window.kept(path).tolist()
        for tags_of_text, constraint in zip(tags, constraints, strict=True):
            write_tags(self.scheme, constraint, tags_of_text)
        return [self._spans_of(tags_of_text) for tags_of_text in tags]

    def _spans_of(self, tags: list[int]) -> list[Any]:
        """The spans of the tags of a text, without the pieces of entities that windows cut off."""
        spans = self.scheme.decode(tags)
        if self.scheme.is_of_words:
            return spans
        return [span for span in spans if tags[span[0] : span[1]] == self._tags_inside(span)]

    def _tags_inside(self, span: Any) -> list[int]:
        start, end, label = span
        return self.scheme.encode([(0, end - start, label)], end - start)

    def _best_spans_and_confidences(
        self,
        texts: Sequence[str],
        readings: Readings,
        batches: Iterable[Batch],
        constraints: Sequence[Any],
        classes: bool,
    ) -> tuple[SpanLists, list[list[float]]]:
        """The spans of the best path of each text, in units, and their posteriors."""
        batches = list(batches)
        spans, scored = self._best_spans(readings, batches, constraints), [batch[:2] for batch in batches]
        if self._has_entities:
            return spans, entity_confidences(self.network, spans, _blanks(texts, readings), scored)
        confidences_of = span_confidences if classes or not self.has_word_classes else word_confidences
        return spans, confidences_of(self.network, spans, scored)

    def _likely_spans(
        self,
        texts: Sequence[str],
        readings: Readings,
        batches: Iterable[Batch],
        constraints: Sequence[Any],
        threshold: float,
    ) -> tuple[SpanLists, list[list[float]]]:
        """The entities whose posterior is at least the threshold, in units, and their posteriors."""
        scored, blanks = [batch[:2] for batch in batches], _blanks(texts, readings)
        marginals, spans = self._marginals(readings, scored), []
        for rows, constraint, blank in zip(marginals, constraints, blanks, strict=True):
            write_tags(self.scheme, constraint, rows)
            possible = possible_spans(self.scheme, rows >= threshold / most_variants(blank))
            given = set(constraint.spans) if constraint else set()
            spans.append(sorted({span if span in given else without_blanks(span, blank) for span in possible}))
        confidences = entity_confidences(self.network, spans, blanks, scored)
        chosen = [
            without_overlaps(candidates, ps, threshold) for candidates, ps in zip(spans, confidences, strict=True)
        ]
        return [candidates for candidates, _ in chosen], [ps for _, ps in chosen]

    def _marginals(self, readings: Readings, batches: Iterable[tuple[list[Any], Any]]) -> list[np.ndarray]:
        """The marginals of each text, `(units, tags)`."""
        marginals = [np.zeros((len(reading.units), len(self.scheme))) for reading in readings]
        for windows, scores in batches:
            for (number, window), rows in zip(windows, self.network.marginals(scores), strict=True):
                marginals[number][slice(*window.keep)] = window.kept(rows)
        return marginals

    def marginals(
        self, texts: Sequence[str], batch_size: int = 64, on_batch: OnBatch = ignore
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """The units of each text, `(units, 2)` in characters, and their marginals, `(units, tags)`."""
        readings = self.reader.read(texts)
        batches = self._decode(texts, readings, batch_size, on_batch, [None] * len(texts))
        marginals = self._marginals(readings, (batch[:2] for batch in batches))
        return [(reading.units, rows) for reading, rows in zip(readings, marginals, strict=True)]

    def entropies(self, texts: Sequence[str], batch_size: int = 64, on_batch: OnBatch = ignore) -> np.ndarray:
        """The entropy of the tag sequences of each text in nats, `(texts,)`; the sum if a text has several windows."""
        return self.uncertainties(texts, path_entropies, batch_size, on_batch)[0]

    def uncertainties(
        self,
        texts: Sequence[str],
        measure: Measure,
        batch_size: int = 64,
        on_batch: OnBatch = ignore,
        constraints: Sequence[SpanConstraints] | None = None,
        tokens: Sequence[Any] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The uncertainty of the model about each text.

        Args:
            texts, batch_size, on_batch, constraints, tokens: As for `spans`.
            measure: A function of `kcrf.taggers.uncertainty`.

        Returns:
            Two arrays `(texts,)`: the sums of the measure over the windows of each text, and the numbers of units.
        """
        readings = self.reader.read(texts, tokens)
        totals, limits = np.zeros(len(texts)), self._in_units(texts, readings, constraints)
        for windows, scores, _ in self._decode(texts, readings, batch_size, on_batch, limits):
            np.add.at(totals, [number for number, _ in windows], measure(self.network, scores, windows))
        return totals, np.array([len(reading.units) for reading in readings], int)

    def k_best(
        self,
        texts: Sequence[str],
        k: int,
        batch_size: int = 64,
        on_batch: OnBatch = ignore,
        constraints: Sequence[SpanConstraints] | None = None,
        tokens: Sequence[Any] | None = None,
        classes: bool = True,
    ) -> list[list[tuple[list[Any], float]]]:
        """The spans of the k best tag sequences of each text. The probabilities of equal results are added.

        Args:
            texts, batch_size, on_batch, constraints, tokens: As for `spans`.
            k: The number of results. They are those of the k best tag sequences, and of the 8 k best ones where many
                sequences give the same result: words without their classes, and entities in texts with white space.
            classes: For words with classes: whether the spans have the classes. Defaults to True.

        Returns:
            For each text a list of at most k `(spans, probability)`, best first.
        """
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise ValueError(f"`k` must be a positive integer. Received: {k!r}")
        readings = self.reader.read(texts, tokens)
        counts = self._sequences(texts, readings, k, classes)
        best: list[dict] = [{} for _ in texts]  # from the kept part of each window to its best tag sequences
        limits = self._in_units(texts, readings, constraints)
        for windows, scores, _ in self._decode(texts, readings, batch_size, on_batch, limits):
            paths_of_longest = len(self.scheme) ** max(len(window.positions) for _, window in windows)
            most = min(max(counts[number] for number, _ in windows), paths_of_longest)
            for (number, window), paths, likely in zip(windows, *self.network.best_paths(scores, most), strict=True):
                if window.keep[0] < window.keep[1]:
                    count = counts[number]
                    best[number][window.keep] = best_of_window(window, paths[:count], likely[:count])
        analyses = []
        given = [None] * len(texts) if constraints is None else constraints
        for text, reading, ways, limit, constraint, count in zip(
            texts, readings, best, limits, given, counts, strict=True
        ):
            sequences = [(list(tags), p) for tags, p in join_windows([ways[keep] for keep in sorted(ways)], count)]
            for tags, _ in sequences:
                write_tags(self.scheme, limit, tags)
            analyses.append(self._analyses(text, reading, sequences, classes, constraint)[:k])
        return analyses

    def _sequences(self, texts: Sequence[str], readings: Readings, k: int, classes: bool) -> list[int]:
        """How many tag sequences of each text are needed for k results."""
        if self.has_word_classes and not classes:
            return [_SEQUENCES_OF_A_RESULT * k] * len(texts)
        if not self._has_entities:
            return [k] * len(texts)
        return [_SEQUENCES_OF_A_RESULT * k if blank.any() else k for blank in _blanks(texts, readings)]

    def top_k(self, *args: Any, **kwargs: Any) -> list[list[tuple[float, list[Any]]]]:
        """Deprecated: `k_best` returns `(spans, probability)`; this method returns `(probability, spans)`."""
        return probability_first("Tagger.top_k", "k_best", self.k_best(*args, **kwargs))

    def _analyses(
        self,
        text: str,
        reading: Reading,
        sequences: Iterable[tuple[list[int], float]],
        classes: bool,
        constraint: SpanConstraints | None,
    ) -> list[tuple[list[Any], float]]:
        """`(spans, probability)` of `(tags, log probability)`, best first; sequences with the same spans are merged."""
        probabilities = {}
        for tags, score in sequences:
            (found,) = self._in_characters([text], [reading], [self._spans_of(tags)], classes)
            spans = tuple(*self._trimmed([text], [found], [constraint]))
            probabilities[spans] = probabilities.get(spans, 0.0) + float(np.exp(score))
        return sorted(((list(spans), p) for spans, p in probabilities.items()), key=lambda item: -item[1])

    def _decode(
        self,
        texts: Sequence[str],
        readings: Readings,
        batch_size: int,
        on_batch: OnBatch,
        constraints: Sequence[Any],
        with_scores: bool = True,
    ) -> Iterator[Batch]:
        """Yields `(windows, scores, paths)` of each batch.

        `windows` is a list of `(number of the text, Window)`, `scores` the scores of the network, and `paths` the tags
        `(windows, time)`.
        """
        for windows, inputs in inference_batches(readings, batch_size, self.network.few_shapes):
            allowed = self._allowed(windows, constraints, next(iter(inputs.values())).shape[:2])
            paths, scores = self.network.decode(inputs, allowed, len(windows), with_scores)
            yield windows, scores, paths
            on_batch(sum(_characters(texts[number], readings[number], window) for number, window in windows))

    def _allowed(self, windows: list[Any], constraints: Sequence[Any], shape: tuple[int, ...]) -> np.ndarray:
        """An array to add to the emissions of a batch: -inf for forbidden tags, else 0."""
        allowed = np.zeros((*shape, len(self.scheme)), "float32")
        for scores, (number, window) in zip(allowed, windows):
            if constraints[number] is not None:
                may = allowed_tags(self.scheme, constraints[number], window.first, len(window.positions))
                scores[window.positions] = np.where(may, 0.0, -np.inf)
        return allowed

    def scores(self, sentences: Sequence[Sentence], training_words: set[str] | None = None) -> dict[str, Any]:
        """The scores of the predictions of this tagger.

        Args:
            sentences: List of `kcrf.corpora.Sentence` with the gold spans.
            training_words: For segmentation: the in-vocabulary words. Defaults to None.

        Returns:
            A dict, as `segmentation_scores`, `tagged_word_scores`, `entity_scores` or `token_scores` return it.
            Predictions where the labels of a sentence are unknown are not scored.
        """
        return self.score(sentences, self.spans_of(sentences), training_words)

    def spans_of(self, sentences: Sequence[Sentence]) -> SpanLists:
        """As `spans`, for `kcrf.corpora.Sentence`s with their tokens."""
        texts, tokens = texts_and_tokens(sentences)
        return self.spans(texts, tokens=tokens)

    def score(
        self, sentences: Sequence[Sentence], predicted: Sequence[Any], training_words: set[str] | None = None
    ) -> dict[str, Any]:
        """As `scores`, for spans that have been predicted before."""
        return score_spans(self.scheme, sentences, predicted, training_words)


def _blanks(texts: Sequence[str], readings: Readings) -> list[np.ndarray]:
    """Whether each unit of each text is white space, `(units,)` bool."""
    return [
        np.array([text[start:end].isspace() for start, end in reading.units], bool)
        if _WHITE_SPACE.search(text)
        else np.zeros(len(reading.units), bool)
        for text, reading in zip(texts, readings, strict=True)
    ]


def _trimmed(text: str, spans: list[Any], constraint: SpanConstraints | None) -> list[Any]:
    """The entities of a text without white space at their edges. Those that the user gave stay as they are."""
    given = {(start, end) for start, end, *_ in constraint.spans} if constraint else ()
    inner = [span if span[:2] in given else trimmed_span(text, span) for span in spans]
    return [span for span in inner if span[:2] in given or not text[span[0] : span[1]].isspace()]


def _characters(text: str, reading: Reading, window: Any) -> int:
    """The number of characters whose tags a window decides: up to the next unit after its kept units."""
    start, stop = window.keep
    units = reading.units
    begin = units[start, 0] if start else 0
    end = units[stop, 0] if stop < len(units) else len(text)
    return int(end - begin) if start < len(units) else 0

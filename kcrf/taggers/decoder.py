"""Decodes texts with a network: spans, their probabilities, the k best analyses. Needs no Keras."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from kcrf.corpora import Sentence
from kcrf.corpora.offsets import trimmed_span
from kcrf.networks.network import TaggingNetwork
from kcrf.readers import Reader, spans_of_units
from kcrf.readers.padding import inference_batches
from kcrf.readers.units import Reading
from kcrf.taggers.constraints import SpanConstraints, allowed_tags, in_units, write_tags
from kcrf.taggers.estimates import begins_of
from kcrf.taggers.probabilities import (
    at_least,
    best_of_window,
    blank_units,
    join_windows,
    most_variants,
    possible_spans,
    probabilities_of_entities,
    probabilities_of_spans,
    probabilities_of_words,
    without_blanks,
    without_overlaps,
)
from kcrf.taggers.spans import Part, Span
from kcrf.taggers.suggestions import Measure, path_entropies
from kcrf.tags import TagScheme

_SEQUENCES_OF_A_RESULT = 8  # where several tag sequences give the same result
_SAMPLE = 64  # the number of texts that `Decoder.emissions` reads

OnBatch = Callable[[int], object]
Batch = tuple[list[Any], Any, np.ndarray]  # windows, scores, paths
Units = tuple[list[Any], list[float] | None]  # the spans of a text in units, and their probabilities
Network = TypeVar("Network", bound=TaggingNetwork, covariant=True)


class _Ignore:
    """The default of `on_batch`, which does nothing, with its name in place of an address in `help()`."""

    def __call__(self, characters: int) -> None:
        pass

    def __repr__(self) -> str:
        return "ignore"


ignore = _Ignore()


def parts_of_sentences(sentences: Iterable[Sentence]) -> list[Part]:
    """The `Part` of each sentence, with its tokens."""
    return [Part(sentence.text, sentence.tokens) for sentence in sentences]


class _Text(NamedTuple):
    """A part, its reading, and its constraints in units of the model, or None."""

    part: Part
    reading: Reading
    limits: SpanConstraints | None


class Decoder(Generic[Network]):
    """Predicts the spans of texts with a network, a reader and a tag scheme.

    Words cover the text, which must not contain white space.

    Predicted entities follow the tag scheme, even if the model was trained without constraints: no entity begins with
    an I. They have no white space at their edges, except for entities that constraints ask for. Probabilities are those
    of the model, which may give other tag sequences a probability above 0.

    A softmax head is decoded as a CRF whose transitions are 0. The probability of a span is then the product of the
    probabilities of its tags and, for BIO, of the probability that no I follows.

    Attributes:
        scheme: The `TagScheme` of the network.
        overlaps: Whether all entities with `min_probability` are predicted, also overlapping ones.
        has_word_labels: Whether spans are words with their classes.
    """

    def __init__(self, network: Network, reader: Any, min_probability: float | None = None) -> None:
        self.network, self.min_probability, self.overlaps = network, min_probability, False
        self.reader: Reader = reader
        self.scheme = network.scheme
        self.has_word_labels = self.scheme.is_of_words and bool(self.scheme.types)
        self._has_entities = not (self.scheme.is_of_words or self.scheme.is_of_tokens)

    def spans(
        self,
        parts: Sequence[Part],
        batch_size: int = 64,
        on_batch: OnBatch = ignore,
        with_labels: bool = True,
        with_probabilities: bool = True,
    ) -> list[list[Span]]:
        """The spans of each part, given its constraints."""
        texts, with_scores = self._read(parts), with_probabilities or self.min_probability is not None
        batches = self._decode(texts, batch_size, on_batch, with_scores)
        if with_scores:
            return self._spans(texts, batches, with_labels)
        best = self._best_spans(texts, batches)
        return [self._finished(text, spans, None, with_labels) for text, spans in zip(texts, best, strict=True)]

    def _spans(self, texts: Sequence[_Text], batches: Iterable[Batch], with_labels: bool) -> list[list[Span]]:
        """The spans of each text with their probabilities."""
        if self.min_probability is not None:
            found = self._likely_spans(texts, batches, self.min_probability)
        else:
            found = self._best_spans_and_probabilities(texts, batches, with_labels)
        return [self._finished(text, *of_text, with_labels) for text, of_text in zip(texts, found, strict=True)]

    def spans_and_begins(
        self, parts: Sequence[Part], batch_size: int = 64, on_batch: OnBatch = ignore, with_labels: bool = True
    ) -> tuple[list[list[Span]], np.ndarray]:
        """The result of `spans`, and the expected numbers of spans with each label in each part, `(parts, labels)`."""
        texts, begins = self._read(parts), begins_of(self.scheme)
        batches = list(self._decode(texts, batch_size, on_batch))
        marginals = self._marginals(texts, [batch[:2] for batch in batches])
        expected = np.array([begins @ rows.sum(axis=0) for rows in marginals]).reshape(len(texts), len(begins))
        return self._spans(texts, batches, with_labels), expected

    def spans_of(self, sentences: Sequence[Sentence]) -> list[list[tuple[Any, ...]]]:
        """The predicted spans of sentences in the form of their gold spans: `(start, end)` or `(start, end, label)`."""
        spans_of_sentences = self.spans(parts_of_sentences(sentences), with_probabilities=False)
        return [[span.key for span in spans] for spans in spans_of_sentences]

    def _read(self, parts: Sequence[Part]) -> list[_Text]:
        readings = self.reader.read([part.text for part in parts], [part.tokens for part in parts])
        return [_Text(part, read, self._limits(part, read)) for part, read in zip(parts, readings, strict=True)]

    def _limits(self, part: Part, reading: Reading) -> SpanConstraints | None:
        if part.constraints is None or not any(part.constraints):
            return None
        return in_units(self.scheme, reading.units, part.constraints, len(part.text))

    def _finished(
        self, text: _Text, spans: list[Any], probabilities: Sequence[float | None] | None, with_labels: bool
    ) -> list[Span]:
        """The `Span`s of spans in units. Entities have no white space at their edges, unless the user gave them."""
        (string, constraints), units = (text.part.text, text.part.constraints), text.reading.units
        found = spans_of_units(self.scheme, units, spans, len(string))
        if probabilities is None:
            probabilities = [None] * len(found)
        elif found and not spans:  # a text without units is one word
            probabilities = [1.0]
        if self._has_entities:
            given = {span[:2] for span in constraints.spans} if constraints else ()
            found = [span if span[:2] in given else trimmed_span(string, span) for span in found]
        results = []
        for (start, end, *label), probability in zip(found, probabilities, strict=True):
            word = string[start:end]
            if not self._has_entities or not word.isspace() or (start, end) in given:
                results.append(Span(start, end, word, label[0] if label and with_labels else "", probability))
        return results

    def _best_spans(self, texts: Sequence[_Text], batches: Iterable[Batch]) -> list[list[Any]]:
        """The spans of the best path of each text, in units."""
        tags = [[0] * len(text.reading.units) for text in texts]
        for windows, _, paths in batches:
            for (number, window), path in zip(windows, paths, strict=True):
                tags[number][slice(*window.keep)] = window.kept(path).tolist()
        for text, tags_of_text in zip(texts, tags, strict=True):
            write_tags(self.scheme, text.limits, tags_of_text)
        return [self._spans_of_tags(tags_of_text) for tags_of_text in tags]

    def _spans_of_tags(self, tags: list[int]) -> list[Any]:
        """The spans of the tags of a text, without the pieces of entities that windows cut off."""
        spans = self.scheme.decode(tags)
        if self.scheme.is_of_words:
            return spans
        return [
            (start, end, label)
            for start, end, label in spans
            if tags[start:end] == self.scheme.encode([(0, end - start, label)], end - start)
        ]

    def _best_spans_and_probabilities(
        self, texts: Sequence[_Text], batches: Iterable[Batch], with_labels: bool
    ) -> list[Units]:
        """The spans of the best path of each text, in units, and their posteriors."""
        batches = list(batches)
        spans, scored = self._best_spans(texts, batches), [batch[:2] for batch in batches]
        if self._has_entities:
            probabilities = probabilities_of_entities(self.network, spans, self._blanks(texts), scored)
        elif with_labels or not self.has_word_labels:
            probabilities = probabilities_of_spans(self.network, spans, scored)
        else:
            probabilities = probabilities_of_words(self.network, spans, scored)
        return list(zip(spans, probabilities, strict=True))

    def _likely_spans(self, texts: Sequence[_Text], batches: Iterable[Batch], threshold: float) -> list[Units]:
        """The entities whose posterior is at least the threshold, in units, and their posteriors."""
        scored, blanks = [batch[:2] for batch in batches], self._blanks(texts)
        marginals, spans = self._marginals(texts, scored), []
        for text, rows, blank in zip(texts, marginals, blanks, strict=True):
            write_tags(self.scheme, text.limits, rows)
            possible = possible_spans(self.scheme, rows >= threshold / most_variants(blank))
            given = set(text.limits.spans) if text.limits else set()
            spans.append(sorted({span if span in given else without_blanks(span, blank) for span in possible}))
        probabilities = probabilities_of_entities(self.network, spans, blanks, scored)
        choose = at_least if self.overlaps else without_overlaps
        return [choose(of_text, ps, threshold) for of_text, ps in zip(spans, probabilities, strict=True)]

    def _blanks(self, texts: Sequence[_Text]) -> list[np.ndarray]:
        return [blank_units(text.part.text, text.reading.units) for text in texts]

    def _marginals(self, texts: Sequence[_Text], batches: Iterable[tuple[list[Any], Any]]) -> list[np.ndarray]:
        """The marginals of each text, `(units, tags)`."""
        marginals = [np.zeros((len(text.reading.units), len(self.scheme))) for text in texts]
        for windows, scores in batches:
            for (number, window), rows in zip(windows, self.network.marginals(scores), strict=True):
                marginals[number][slice(*window.keep)] = window.kept(rows)
        return marginals

    def uncertainties(
        self, parts: Sequence[Part], measure: Measure = path_entropies, batch_size: int = 64, on_batch: OnBatch = ignore
    ) -> tuple[np.ndarray, np.ndarray]:
        """The uncertainty of the model about each part."""
        texts, totals = self._read(parts), np.zeros(len(parts))
        for windows, scores, _ in self._decode(texts, batch_size, on_batch):
            np.add.at(totals, [number for number, _ in windows], measure(self.network, scores, windows))
        return totals, np.array([len(text.reading.units) for text in texts], int)

    def k_best(
        self, parts: Sequence[Part], k: int, batch_size: int = 64, on_batch: OnBatch = ignore, with_labels: bool = True
    ) -> list[list[tuple[list[Span], float]]]:
        """The spans of the k best tag sequences of each part. The probabilities of equal results are added."""
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise ValueError(f"`k` must be a positive integer. Received: {k!r}")
        texts = self._read(parts)
        counts = self._sequences(texts, k, with_labels)
        best: list[dict[Any, Any]] = [{} for _ in texts]  # from the kept part of each window to its best tag sequences
        for windows, scores, _ in self._decode(texts, batch_size, on_batch):
            paths_of_longest = len(self.scheme) ** max(len(window.positions) for _, window in windows)
            most = min(max(counts[number] for number, _ in windows), paths_of_longest)
            for (number, window), paths, likely in zip(windows, *self.network.best_paths(scores, most), strict=True):
                if window.keep[0] < window.keep[1]:
                    count = counts[number]
                    best[number][window.keep] = best_of_window(window, paths[:count], likely[:count])
        return [
            self._analyses(text, join_windows([ways[keep] for keep in sorted(ways)], count), with_labels)[:k]
            for text, ways, count in zip(texts, best, counts, strict=True)
        ]

    def _sequences(self, texts: Sequence[_Text], k: int, with_labels: bool) -> list[int]:
        """How many tag sequences of each text are needed for k results."""
        if self.has_word_labels and not with_labels:
            return [_SEQUENCES_OF_A_RESULT * k] * len(texts)
        if not self._has_entities:
            return [k] * len(texts)
        return [_SEQUENCES_OF_A_RESULT * k if blank.any() else k for blank in self._blanks(texts)]

    def _analyses(
        self, text: _Text, sequences: Iterable[tuple[list[int], float]], with_labels: bool
    ) -> list[tuple[list[Span], float]]:
        """`(spans, probability)` of `(tags, log probability)`, best first; sequences with the same spans are merged."""
        probabilities: dict[tuple[Span, ...], float] = {}
        for tags, score in sequences:
            write_tags(self.scheme, text.limits, tags)
            spans = tuple(self._finished(text, self._spans_of_tags(tags), None, with_labels))
            probabilities[spans] = probabilities.get(spans, 0.0) + float(np.exp(score))
        return sorted(((list(spans), p) for spans, p in probabilities.items()), key=lambda item: -item[1])

    def _decode(
        self, texts: Sequence[_Text], batch_size: int, on_batch: OnBatch, with_scores: bool = True
    ) -> Iterator[Batch]:
        """Yields `(windows, scores, paths)` of each batch.

        `windows` is a list of `(number of the text, Window)`, `scores` the scores of the network, and `paths` the tags
        `(windows, time)`.
        """
        readings = [text.reading for text in texts]
        for windows, inputs in inference_batches(readings, batch_size, self.network.few_shapes):
            allowed = self._allowed(texts, windows, next(iter(inputs.values())).shape[:2])
            paths, scores = self.network.decode(inputs, allowed, len(windows), with_scores)
            yield windows, scores, paths
            on_batch(sum(_characters(texts[number], window) for number, window in windows))

    def _allowed(self, texts: Sequence[_Text], windows: list[Any], shape: tuple[int, ...]) -> np.ndarray:
        """An array to add to the emissions of a batch: -inf for forbidden tags, else 0."""
        allowed = np.zeros((*shape, len(self.scheme)), "float32")
        for scores, (number, window) in zip(allowed, windows):
            limits = texts[number].limits
            if limits is not None:
                may = allowed_tags(self.scheme, limits, window.first, len(window.positions))
                scores[window.positions] = np.where(may, 0.0, -np.inf)
        return allowed

    # -- for teachers and reports, with a `kcrf.networks.network.TrainedNetwork`

    def emissions(self, texts: Sequence[str]) -> np.ndarray:
        """The emission scores in the first window of each of the first 64 texts, concatenated: `(units, tags)`."""
        readings = self.reader.read(texts[:_SAMPLE])
        first = [reading._replace(windows=reading.windows[:1]) for reading in readings]
        rows: dict[int, np.ndarray] = {}
        network: Any = self.network
        for windows, inputs in inference_batches(first, _SAMPLE):
            for (number, window), scores in zip(windows, network.emissions(inputs)):
                rows[number] = scores[window.positions]
        return np.concatenate([rows[number] for number in sorted(rows)])

    def expected_counts(
        self,
        parts: Sequence[Part],
        constraints: TagScheme | None = None,
        temperature: float = 1.0,
        on_batch: OnBatch = ignore,
        limits: Sequence[SpanConstraints | None] | None = None,
    ) -> list[list[tuple[np.ndarray, np.ndarray]]]:
        """The expected counts of tags and transitions in each window of the parts."""
        network: Any = self.network
        teacher = Decoder(network.as_teacher(constraints, temperature), self.reader)
        texts = teacher._read(parts)
        if limits is not None:
            texts = [text._replace(limits=of_text) for text, of_text in zip(texts, limits, strict=True)]
        counts_of_texts: list[dict[Any, Any]] = [{} for _ in texts]
        for windows, scores, _ in teacher._decode(texts, 64, on_batch):
            counts = teacher.network.expected_counts(scores, constraints, temperature)
            for (number, window), tags, steps in zip(windows, *counts, strict=True):
                counts_of_texts[number][window.first, window.keep] = tags[window.positions], steps
        return [[of_text[window] for window in sorted(of_text)] for of_text in counts_of_texts]


def _characters(text: _Text, window: Any) -> int:
    """The number of characters whose tags a window decides: up to the next unit after its kept units."""
    (start, stop), units = window.keep, text.reading.units
    begin = units[start, 0] if start else 0
    end = units[stop, 0] if stop < len(units) else len(text.part.text)
    return int(end - begin) if start < len(units) else 0

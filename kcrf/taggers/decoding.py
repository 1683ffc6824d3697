"""Tags texts with a trained model: spans, their probabilities, the next best alternatives, scores. Needs no Keras."""

import numpy as np

from kcrf.metrics import entity_scores, segmentation_scores
from kcrf.readers import spans_of_units
from kcrf.readers.padding import inference_batches
from kcrf.taggers.confidences import possible_spans, span_confidences, without_overlaps
from kcrf.taggers.k_best import best_of_window, join_windows
from kcrf.taggers.known_spans import allowed_tags, in_units, write_tags

__all__ = ["Tagger", "ignore"]

_SAMPLE = 64  # how many texts `Tagger.emissions` looks at


def ignore(characters):
    """The default of `on_batch`: does nothing."""


class Tagger:
    """A model with its reader and its tag scheme: from texts to spans.

    Spans are `(start, end)` for words and `(start, end, label)` for entities, half-open, in characters. Words cover the
    text. Texts to be segmented must not have white space.

    Paths of entities follow the tag scheme, also if the model was trained without constraints: no entity begins with an
    I. Probabilities are those of the model, in which other paths may be possible.

    A softmax head is decoded as a CRF whose transitions are 0. The probability of a span is then the product of those
    of its tags and, under BIO, of the probability that no I follows.

    Args:
        network: A `kcrf.taggers.keras_networks.KerasTaggingNetwork`, or what has its methods.
        reader: The `CharacterReader`, `WordReader` or `PieceReader` of its inputs.
        min_confidence: For entities. None takes those of the best path; a number takes all whose posterior is at least
            that, and of those that overlap the surest. By what the model believes, F1 is highest at about half of the
            best F1 (Lipton et al., 2014, "Optimal Thresholding of Classifiers to Maximize F1 Measure"): where F1 is
            low, many entities that are on no best path should be found. Defaults to None.

    Attributes:
        scheme: The `TagScheme` of the network.
        metric: The score by which the best epoch is chosen: "f".
        advice: After training, one sentence about the transitions of the CRF, as `kcrf.metrics.advice` gives it; None
            without a CRF and for a tagger that was loaded.
    """

    metric = "f"

    def __init__(self, network, reader, min_confidence=None, advice=None):
        self.network, self.reader, self.min_confidence = network, reader, min_confidence
        self.scheme, self.advice = network.scheme, advice

    def with_advice(self, advice):
        """The same tagger with advice on its transitions."""
        return Tagger(self.network, self.reader, self.min_confidence, advice)

    @property
    def model(self):
        """The Keras model."""
        return self.network.model

    @property
    def crf(self):
        """Its `ConditionalRandomField`, or None."""
        return self.network.crf

    @property
    def temperature(self):
        """All scores are divided by it before probabilities are computed."""
        return self.network.temperature

    def spans(self, texts, batch_size=64, on_batch=ignore, confidence=False, known=None, tokens=None):
        """The spans of each text.

        Args:
            texts: List of strings of any length.
            batch_size: Windows of up to 128 positions in a batch. Defaults to 64.
            on_batch: Called after each batch with the number of characters whose tags it decided.
            confidence: Whether to append to each span the posterior probability that exactly this span is there.
                Defaults to False.
            known: A `Known` in characters for each text. What it leaves open is found as if all other tag sequences
                had no probability. Defaults to None: nothing is known.
            tokens: For each text a list of the `(start, end)` of its tokens, in characters, for a model whose units are
                words. Defaults to None: it cuts the texts itself.

        Returns:
            For each text a list of `(start, end)`, `(start, end, label)`, or either followed by a probability.
        """
        readings = self.reader.read(texts, tokens)
        known = self._in_units(texts, readings, known)
        sure = confidence or self.min_confidence is not None
        batches = self._decode(texts, readings, batch_size, on_batch, known, with_scores=sure)
        if self.min_confidence is not None:
            found, sure = self._likely_spans(readings, batches, known)
        elif confidence:
            found, sure = self._best_spans_and_confidences(readings, batches, known)
        else:
            found, sure = self._best_spans(readings, batches, known), None
        spans = [
            spans_of_units(self.scheme, reading.units, row, len(text))
            for text, reading, row in zip(texts, readings, found, strict=True)
        ]
        if not confidence:
            return spans
        # A text without units may be a word all the same: of no probability but 1.
        return [[(*span, p) for span, p in zip(row, ps or [1.0])] for row, ps in zip(spans, sure, strict=True)]

    def _in_units(self, texts, readings, known):
        """`known` in units of the model, None for each text of which nothing is known."""
        if known is None:
            return [None] * len(texts)
        return [
            in_units(self.scheme, reading.units, item, len(text)) if any(item) else None
            for text, reading, item in zip(texts, readings, known, strict=True)
        ]

    def _best_spans(self, readings, batches, known):
        """The spans of the best path of each text, in units."""
        tags = [[0] * len(reading.units) for reading in readings]
        for windows, _, paths in batches:
            for (number, window), path in zip(windows, paths, strict=True):
                tags[number][slice(*window.keep)] = window.kept(path).tolist()
        for row, item in zip(tags, known, strict=True):
            write_tags(self.scheme, item, row)
        return [self._spans_of(row) for row in tags]

    def _spans_of(self, tags):
        """The spans of the tags of a text. Where two windows meet, a piece of an entity is left out."""
        spans = self.scheme.decode(tags)
        if not self.scheme.types:
            return spans
        return [span for span in spans if tags[span[0] : span[1]] == self._tags_inside(span)]

    def _tags_inside(self, span):
        start, end, label = span
        return self.scheme.encode([(0, end - start, label)], end - start)

    def _best_spans_and_confidences(self, readings, batches, known):
        """The spans of the best path of each text, in units, and their posteriors."""
        batches = list(batches)
        found = self._best_spans(readings, batches, known)
        return found, span_confidences(self.network, found, [batch[:2] for batch in batches])

    def _likely_spans(self, readings, batches, known):
        """The entities whose posterior is at least `min_confidence`, in units, and their posteriors."""
        seen = [batch[:2] for batch in batches]
        marginals = self._marginals(readings, seen)
        for rows, item in zip(marginals, known, strict=True):
            write_tags(self.scheme, item, rows)
        spans = [possible_spans(self.scheme, rows >= self.min_confidence) for rows in marginals]
        sure = span_confidences(self.network, spans, seen)
        chosen = [without_overlaps(row, ps, self.min_confidence) for row, ps in zip(spans, sure, strict=True)]
        return [row for row, _ in chosen], [ps for _, ps in chosen]

    def _marginals(self, readings, batches):
        """The posterior probability of every tag of each unit, `(units, tags)` for each text."""
        found = [np.zeros((len(reading.units), len(self.scheme))) for reading in readings]
        for windows, scores in batches:
            for (number, window), rows in zip(windows, self.network.marginals(scores), strict=True):
                found[number][slice(*window.keep)] = window.kept(rows)
        return found

    def marginals(self, texts, batch_size=64, on_batch=ignore):
        """The units of each text and their posteriors: pairs `(units, 2)`, in characters, and `(units, tags)`."""
        readings = self.reader.read(texts)
        batches = self._decode(texts, readings, batch_size, on_batch, [None] * len(texts))
        found = self._marginals(readings, (batch[:2] for batch in batches))
        return [(reading.units, rows) for reading, rows in zip(readings, found, strict=True)]

    def entropies(self, texts, batch_size=64, on_batch=ignore):
        """The entropy of the tag sequences of each text in nats, an array; of several windows the sum."""
        readings, found = self.reader.read(texts), np.zeros(len(texts))
        for windows, scores, _ in self._decode(texts, readings, batch_size, on_batch, [None] * len(texts)):
            np.add.at(found, [number for number, _ in windows], self.network.entropies(scores))
        return found

    def top_k(self, texts, k, batch_size=64, on_batch=ignore, known=None, tokens=None):
        """The spans of the k most probable tag sequences of each text, best first. Equal ones are added up.

        Args:
            texts, batch_size, on_batch, known, tokens: As for `spans`.
            k: How many tag sequences.

        Returns:
            For each text a list of at most k `(probability, spans)`.
        """
        if not isinstance(k, int | np.integer) or k < 1:
            raise ValueError(f"`k` must be a positive integer. Received: {k!r}")
        readings = self.reader.read(texts, tokens)
        best = [{} for _ in texts]  # of each text: from what a window keeps to the best ways to tag that
        known = self._in_units(texts, readings, known)
        for windows, scores, _ in self._decode(texts, readings, batch_size, on_batch, known):
            for (number, window), paths, likely in zip(windows, *self.network.best_paths(scores, k), strict=True):
                if window.keep[0] < window.keep[1]:
                    best[number][window.keep] = best_of_window(window, paths, likely)
        found = []
        for text, reading, ways, item in zip(texts, readings, best, known, strict=True):
            sequences = [(list(tags), p) for tags, p in join_windows([ways[keep] for keep in sorted(ways)], k)]
            for tags, _ in sequences:
                write_tags(self.scheme, item, tags)
            found.append(self._analyses(text, reading, sequences))
        return found

    def _analyses(self, text, reading, sequences):
        """`(probability, spans)` of `(tags, log probability)`, best first. Sequences with the same spans are one."""
        found = {}
        for tags, score in sequences:
            spans = tuple(spans_of_units(self.scheme, reading.units, self._spans_of(tags), len(text)))
            found[spans] = found.get(spans, 0.0) + float(np.exp(score))
        return sorted(((p, list(spans)) for spans, p in found.items()), key=lambda item: -item[0])

    def _decode(self, texts, readings, batch_size, on_batch, known, with_scores=True):
        """Yields `(windows, scores, paths)` of each batch.

        These are a list of `(number of the text, Window)`, the scores of the network and `(windows, time)` tags.
        """
        for windows, inputs in inference_batches(readings, batch_size, self.network.few_shapes):
            allowed = self._allowed(windows, known, next(iter(inputs.values())).shape[:2])
            paths, scores = self.network.decode(inputs, allowed, len(windows), with_scores)
            yield windows, scores, paths
            on_batch(sum(_characters(texts[number], readings[number], window) for number, window in windows))

    def _allowed(self, windows, known, shape):
        """What is added to the emission scores of a batch of this shape: -inf where a tag is not allowed."""
        allowed = np.zeros((*shape, len(self.scheme)), "float32")
        for row, (number, window) in zip(allowed, windows):
            if known[number] is not None:
                may = allowed_tags(self.scheme, known[number], window.first, len(window.positions))
                row[window.positions] = np.where(may, 0.0, -np.inf)
        return allowed

    def expected_counts(self, sentences, constraints=None, temperature=1.0, batch_size=64, on_batch=ignore):
        """How often each tag and each transition is expected in each window of some sentences.

        Args:
            sentences: List of `kcrf.corpora.Sentence`, whose tokens are used.
            constraints, temperature: As for `ConditionalRandomField.expected_counts`.
            batch_size, on_batch: As for `spans`.

        Returns:
            For each sentence a list with `(tags (units, tags), steps (tags, tags))` of each of its windows.
        """
        texts = [sentence.text for sentence in sentences]
        readings = self.reader.read(texts, [sentence.tokens for sentence in sentences])
        found = [{} for _ in texts]
        for windows, scores, _ in self._decode(texts, readings, batch_size, on_batch, [None] * len(texts)):
            counts = self.network.expected_counts(scores, constraints, temperature)
            for (number, window), tags, steps in zip(windows, *counts, strict=True):
                found[number][window.first, window.keep] = tags[window.positions], steps
        return [[counts[window] for window in sorted(counts)] for counts in found]

    def fit_temperature(self, inputs, tags):
        """Sets the temperature to the one under which tags of held-out sentences are most probable.

        Args:
            inputs: A batch of inputs, a dict of arrays `(windows, time, ...)`.
            tags: `(windows, time)`, -1 where unknown. With fewer than 1,000 known ones the temperature is 1.
        """
        self.network.fit_temperature(inputs, tags)

    def emissions(self, texts):
        """The emission scores in the first window of each of the first 64 texts, `(units, tags)` in one array."""
        readings = self.reader.read(texts[:_SAMPLE])
        first = [reading._replace(windows=reading.windows[:1]) for reading in readings]
        rows = {}
        for windows, inputs in inference_batches(first, _SAMPLE):
            for (number, window), scores in zip(windows, self.network.emissions(inputs)):
                rows[number] = scores[window.positions]
        return np.concatenate([rows[number] for number in sorted(rows)])

    def scores(self, sentences, training_words=None):
        """The scores of what this tagger finds in sentences.

        Args:
            sentences: List of `kcrf.corpora.Sentence`.
            training_words: For segmentation: the words that count as known. Defaults to None.

        Returns:
            A dict, as `segmentation_scores` or `entity_scores` return it.
        """
        return self.score(sentences, self.spans_of(sentences), training_words)

    def spans_of(self, sentences, confidence=False):
        """What `spans` returns for a list of `kcrf.corpora.Sentence`, whose tokens are used."""
        texts, tokens = [sentence.text for sentence in sentences], [sentence.tokens for sentence in sentences]
        return self.spans(texts, confidence=confidence, tokens=tokens)

    def score(self, sentences, found, training_words=None):
        """As `scores`, for spans that were found before."""
        if self.scheme.types:
            return entity_scores([sentence.spans for sentence in sentences], found)
        gold, words = (
            [[s.text[start:end] for start, end in spans] for s, spans in zip(sentences, rows, strict=True)]
            for rows in ([sentence.spans for sentence in sentences], found)
        )
        return segmentation_scores(gold, words, training_words)


def _characters(text, reading, window):
    """How many characters a window decides about: those from its units to the next unit after them."""
    start, stop = window.keep
    units = reading.units
    begin = units[start, 0] if start else 0
    end = units[stop, 0] if stop < len(units) else len(text)
    return int(end - begin) if start < len(units) else 0

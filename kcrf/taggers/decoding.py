"""Tags texts with a trained model: spans, their probabilities, the next best alternatives, scores. Needs no Keras."""

import numpy as np

from kcrf.corpora.tagged import tags_of_tokens
from kcrf.metrics import entity_scores, segmentation_scores, tagged_word_scores, token_scores
from kcrf.readers import spans_of_units
from kcrf.readers.padding import inference_batches
from kcrf.taggers.confidences import possible_spans, span_confidences, without_overlaps, word_confidences
from kcrf.taggers.k_best import best_of_window, join_windows
from kcrf.taggers.k_best_tagger import probability_first
from kcrf.taggers.span_constraints import allowed_tags, in_units, write_tags
from kcrf.taggers.uncertainty import path_entropies

__all__ = ["Tagger", "ignore"]

_SEQUENCES_OF_WORDS = 8  # tag sequences for each of the k best results without classes
_SAMPLE = 64  # how many texts `Tagger.emissions` looks at


def ignore(characters):
    """The default of `on_batch`: does nothing."""


class Tagger:
    """A model with its reader and its tag scheme: from texts to spans.

    Spans are `(start, end)` for words and `(start, end, label)` for entities and for words with classes, half-open, in
    characters. Words cover the text. Texts to be segmented must not have white space.

    Paths of entities follow the tag scheme, also if the model was trained without constraints: no entity begins with an
    I. Probabilities are those of the model, in which other paths may be possible.

    A softmax head is decoded as a CRF whose transitions are 0. The probability of a span is then the product of those
    of its tags and, under BIO, of the probability that no I follows.

    Args:
        network: A `kcrf.taggers.keras_networks.KerasTaggingNetwork`, or what has its methods.
        reader: The `CharacterReader`, `WordReader` or `PieceReader` of its inputs.
        min_confidence: For entities. If a number, the tagger returns every entity with at least this posterior
            probability, and among overlapping entities the most confident one. The expected F1 is highest at a
            threshold of about half of the best F1 (Lipton et al., 2014, "Optimal Thresholding of Classifiers to
            Maximize F1 Measure"). Defaults to None: the entities on the best path.
        advice, metric: The attributes of the same names. Default to None: no advice, and the usual score.

    Attributes:
        scheme: The `TagScheme` of the network.
        metric: The score by which the best epoch is chosen. By default "f", for classes of tokens "accuracy", for words
            with classes "joint_f".
        has_word_classes: Whether spans are words with their classes.
        advice: After training, one sentence about the transitions of the CRF, as `kcrf.metrics.advice` gives it; None
            without a CRF and for a tagger that was loaded.
    """

    def __init__(self, network, reader, min_confidence=None, advice=None, metric=None):
        self.network, self.reader, self.min_confidence = network, reader, min_confidence
        self.scheme, self.advice = network.scheme, advice
        self.has_word_classes = self.scheme.is_of_words and bool(self.scheme.types)
        usual = "accuracy" if self.scheme.is_of_tokens else "joint_f" if self.has_word_classes else "f"
        self.metric = metric or usual

    def with_advice(self, advice):
        """The same tagger with advice on its transitions."""
        return Tagger(self.network, self.reader, self.min_confidence, advice, self.metric)

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

    def spans(
        self, texts, batch_size=64, on_batch=ignore, confidence=False, constraints=None, tokens=None, classes=True
    ):
        """The spans of each text.

        Args:
            texts: List of strings of any length.
            batch_size: Windows of up to 128 positions in a batch. Defaults to 64.
            on_batch: Called after each batch with the number of characters whose tags it decided.
            confidence: Whether to append to each span its posterior probability. Defaults to False.
            constraints: A `SpanConstraints` in characters for each text. The other spans and all probabilities are
                conditioned on them. Defaults to None: no constraints.
            tokens: For each text a list of the `(start, end)` of its tokens, in characters, for a word-level model.
                Defaults to None: the model splits the texts into tokens.
            classes: For words with classes: whether the spans have the classes. Without them, the probability of a word
                is the sum over all classes. Defaults to True.

        Returns:
            For each text a list of `(start, end)`, `(start, end, label)`, or either followed by a probability.
        """
        readings = self.reader.read(texts, tokens)
        constraints = self._in_units(texts, readings, constraints)
        with_scores = confidence or self.min_confidence is not None
        batches = self._decode(texts, readings, batch_size, on_batch, constraints, with_scores)
        confidences = None
        if self.min_confidence is not None:
            spans_in_units, confidences = self._likely_spans(readings, batches, constraints)
        elif confidence:
            spans_in_units, confidences = self._best_spans_and_confidences(readings, batches, constraints, classes)
        else:
            spans_in_units = self._best_spans(readings, batches, constraints)
        spans = [
            spans_of_units(self.scheme, reading.units, spans_of_text, len(text))
            for text, reading, spans_of_text in zip(texts, readings, spans_in_units, strict=True)
        ]
        if not classes:
            spans = [[span[:2] for span in spans_of_text] for spans_of_text in spans]
        if not confidence:
            return spans
        # A text without units may still be a word; its probability is 1.
        return [
            [(*span, p) for span, p in zip(spans_of_text, confidences_of_text or [1.0])]
            for spans_of_text, confidences_of_text in zip(spans, confidences, strict=True)
        ]

    def _in_units(self, texts, readings, constraints):
        """The constraints in units of the model; None for each text without constraints."""
        if constraints is None:
            return [None] * len(texts)
        return [
            in_units(self.scheme, reading.units, constraint, len(text)) if any(constraint) else None
            for text, reading, constraint in zip(texts, readings, constraints, strict=True)
        ]

    def _best_spans(self, readings, batches, constraints):
        """The spans of the best path of each text, in units."""
        tags = [[0] * len(reading.units) for reading in readings]
        for windows, _, paths in batches:
            for (number, window), path in zip(windows, paths, strict=True):
                tags[number][slice(*window.keep)] = window.kept(path).tolist()
        for tags_of_text, constraint in zip(tags, constraints, strict=True):
            write_tags(self.scheme, constraint, tags_of_text)
        return [self._spans_of(tags_of_text) for tags_of_text in tags]

    def _spans_of(self, tags):
        """The spans of the tags of a text, without the pieces of entities that windows cut off."""
        spans = self.scheme.decode(tags)
        if self.scheme.is_of_words:
            return spans
        return [span for span in spans if tags[span[0] : span[1]] == self._tags_inside(span)]

    def _tags_inside(self, span):
        start, end, label = span
        return self.scheme.encode([(0, end - start, label)], end - start)

    def _best_spans_and_confidences(self, readings, batches, constraints, classes):
        """The spans of the best path of each text, in units, and their posteriors."""
        batches = list(batches)
        spans = self._best_spans(readings, batches, constraints)
        confidences_of = span_confidences if classes or not self.has_word_classes else word_confidences
        return spans, confidences_of(self.network, spans, [batch[:2] for batch in batches])

    def _likely_spans(self, readings, batches, constraints):
        """The entities whose posterior is at least `min_confidence`, in units, and their posteriors."""
        scored = [batch[:2] for batch in batches]
        marginals = self._marginals(readings, scored)
        for rows, constraint in zip(marginals, constraints, strict=True):
            write_tags(self.scheme, constraint, rows)
        spans = [possible_spans(self.scheme, rows >= self.min_confidence) for rows in marginals]
        confidences = span_confidences(self.network, spans, scored)
        chosen = [
            without_overlaps(candidates, ps, self.min_confidence)
            for candidates, ps in zip(spans, confidences, strict=True)
        ]
        return [candidates for candidates, _ in chosen], [ps for _, ps in chosen]

    def _marginals(self, readings, batches):
        """The marginals of each text, `(units, tags)`."""
        marginals = [np.zeros((len(reading.units), len(self.scheme))) for reading in readings]
        for windows, scores in batches:
            for (number, window), rows in zip(windows, self.network.marginals(scores), strict=True):
                marginals[number][slice(*window.keep)] = window.kept(rows)
        return marginals

    def marginals(self, texts, batch_size=64, on_batch=ignore):
        """The units of each text and their marginals: pairs `(units, 2)`, in characters, and `(units, tags)`."""
        readings = self.reader.read(texts)
        batches = self._decode(texts, readings, batch_size, on_batch, [None] * len(texts))
        marginals = self._marginals(readings, (batch[:2] for batch in batches))
        return [(reading.units, rows) for reading, rows in zip(readings, marginals, strict=True)]

    def entropies(self, texts, batch_size=64, on_batch=ignore):
        """The entropy of the tag sequences of each text in nats, an array; the sum if a text has several windows."""
        return self.uncertainties(texts, path_entropies, batch_size, on_batch)[0]

    def uncertainties(self, texts, measure, batch_size=64, on_batch=ignore, constraints=None, tokens=None):
        """How uncertain the model is about each text.

        Args:
            texts, batch_size, on_batch, constraints, tokens: As for `spans`.
            measure: A function of `kcrf.taggers.uncertainty`.

        Returns:
            Two arrays `(texts,)`: the sums of the measure over the windows of each text, and the numbers of units.
        """
        readings = self.reader.read(texts, tokens)
        totals, constraints = np.zeros(len(texts)), self._in_units(texts, readings, constraints)
        for windows, scores, _ in self._decode(texts, readings, batch_size, on_batch, constraints):
            np.add.at(totals, [number for number, _ in windows], measure(self.network, scores, windows))
        return totals, np.array([len(reading.units) for reading in readings], int)

    def k_best(self, texts, k, batch_size=64, on_batch=ignore, constraints=None, tokens=None, classes=True):
        """The spans of the k best tag sequences of each text. The probabilities of equal results are added.

        Args:
            texts, batch_size, on_batch, constraints, tokens: As for `spans`.
            k: The number of tag sequences.
            classes: For words with classes: whether the spans have the classes. Without them, the results are those of
                the 8 k best tag sequences. Defaults to True.

        Returns:
            For each text a list of at most k `(spans, probability)`, best first.
        """
        if not isinstance(k, int | np.integer) or k < 1:
            raise ValueError(f"`k` must be a positive integer. Received: {k!r}")
        count = k if classes or not self.has_word_classes else _SEQUENCES_OF_WORDS * k
        readings = self.reader.read(texts, tokens)
        best = [{} for _ in texts]  # for each text: from the kept part of a window to its best tag sequences
        constraints = self._in_units(texts, readings, constraints)
        for windows, scores, _ in self._decode(texts, readings, batch_size, on_batch, constraints):
            for (number, window), paths, likely in zip(windows, *self.network.best_paths(scores, count), strict=True):
                if window.keep[0] < window.keep[1]:
                    best[number][window.keep] = best_of_window(window, paths, likely)
        analyses = []
        for text, reading, ways, constraint in zip(texts, readings, best, constraints, strict=True):
            sequences = [(list(tags), p) for tags, p in join_windows([ways[keep] for keep in sorted(ways)], count)]
            for tags, _ in sequences:
                write_tags(self.scheme, constraint, tags)
            analyses.append(self._analyses(text, reading, sequences, classes)[:k])
        return analyses

    def top_k(self, *args, **kwargs):
        """Deprecated: `k_best` returns `(spans, probability)`; this method returns `(probability, spans)`."""
        return probability_first("Tagger.top_k", "k_best", self.k_best(*args, **kwargs))

    def _analyses(self, text, reading, sequences, classes):
        """`(spans, probability)` of `(tags, log probability)`, best first; sequences with the same spans are merged."""
        probabilities = {}
        for tags, score in sequences:
            spans = tuple(spans_of_units(self.scheme, reading.units, self._spans_of(tags), len(text)))
            spans = spans if classes else tuple(span[:2] for span in spans)
            probabilities[spans] = probabilities.get(spans, 0.0) + float(np.exp(score))
        return sorted(((list(spans), p) for spans, p in probabilities.items()), key=lambda item: -item[1])

    def _decode(self, texts, readings, batch_size, on_batch, constraints, with_scores=True):
        """Yields `(windows, scores, paths)` of each batch.

        These are a list of `(number of the text, Window)`, the scores of the network and `(windows, time)` tags.
        """
        for windows, inputs in inference_batches(readings, batch_size, self.network.few_shapes):
            allowed = self._allowed(windows, constraints, next(iter(inputs.values())).shape[:2])
            paths, scores = self.network.decode(inputs, allowed, len(windows), with_scores)
            yield windows, scores, paths
            on_batch(sum(_characters(texts[number], readings[number], window) for number, window in windows))

    def _allowed(self, windows, constraints, shape):
        """An array to add to the emissions of a batch of this shape: -inf for tags that are not allowed, else 0."""
        allowed = np.zeros((*shape, len(self.scheme)), "float32")
        for scores, (number, window) in zip(allowed, windows):
            if constraints[number] is not None:
                may = allowed_tags(self.scheme, constraints[number], window.first, len(window.positions))
                scores[window.positions] = np.where(may, 0.0, -np.inf)
        return allowed

    def expected_counts(self, sentences, constraints=None, temperature=1.0, batch_size=64, on_batch=ignore):
        """The expected counts of tags and transitions in each window of the sentences.

        Args:
            sentences: List of `kcrf.corpora.Sentence`, whose tokens are used.
            constraints, temperature: As for `ConditionalRandomField.expected_counts`.
            batch_size, on_batch: As for `spans`.

        Returns:
            For each sentence a list with `(tags (units, tags), steps (tags, tags))` of each of its windows.
        """
        texts = [sentence.text for sentence in sentences]
        readings = self.reader.read(texts, [sentence.tokens for sentence in sentences])
        counts_of_texts = [{} for _ in texts]
        for windows, scores, _ in self._decode(texts, readings, batch_size, on_batch, [None] * len(texts)):
            counts = self.network.expected_counts(scores, constraints, temperature)
            for (number, window), tags, steps in zip(windows, *counts, strict=True):
                counts_of_texts[number][window.first, window.keep] = tags[window.positions], steps
        return [[counts[window] for window in sorted(counts)] for counts in counts_of_texts]

    def fit_temperature(self, inputs, tags):
        """Sets the temperature that maximizes the likelihood of the tags of a validation set.

        Args:
            inputs: A batch of inputs, a dict of arrays `(windows, time, ...)`.
            tags: `(windows, time)`, -1 for unknown tags. With fewer than 1,000 known tags, the temperature is 1.
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
        """The scores of the predictions of this tagger.

        Args:
            sentences: List of `kcrf.corpora.Sentence` with the gold spans.
            training_words: For segmentation: the in-vocabulary words. Defaults to None.

        Returns:
            A dict, as `segmentation_scores`, `tagged_word_scores`, `entity_scores` or `token_scores` return it.
            Predictions where the labels of a sentence are unknown are not scored.
        """
        return self.score(sentences, self.spans_of(sentences), training_words)

    def spans_of(self, sentences, confidence=False):
        """As `spans`, for a list of `kcrf.corpora.Sentence` with their tokens."""
        texts, tokens = [sentence.text for sentence in sentences], [sentence.tokens for sentence in sentences]
        return self.spans(texts, confidence=confidence, tokens=tokens)

    def score(self, sentences, predicted, training_words=None):
        """As `scores`, for spans that have been predicted before."""
        if self.scheme.is_of_tokens:
            return token_scores(*_by_token(sentences, predicted), training_words)
        if self.has_word_classes:
            return tagged_word_scores(*_words_with_classes(sentences, predicted), training_words)
        if self.scheme.types:
            scored = [sentence.scored(spans) for sentence, spans in zip(sentences, predicted, strict=True)]
            return entity_scores([sentence.spans for sentence in sentences], scored)
        gold, words = (
            [[s.text[start:end] for start, end in spans] for s, spans in zip(sentences, rows, strict=True)]
            for rows in ([sentence.spans for sentence in sentences], predicted)
        )
        return segmentation_scores(gold, words, training_words)


def _by_token(sentences, predicted):
    """The tokens whose class is known, their gold classes and the predicted ones, lists for each sentence."""
    tokens = [[sentence.text[start:end] for start, end, _ in sentence.spans] for sentence in sentences]
    gold = [[label for *_, label in sentence.spans] for sentence in sentences]
    by_place = [{(start, end): label for start, end, label in spans} for spans in predicted]
    rows = zip(sentences, by_place, strict=True)
    return tokens, gold, [[labels.get((start, end), "?") for start, end, _ in s.spans] for s, labels in rows]


def _words_with_classes(sentences, predicted):
    """For each sentence the `(word, class)` of gold, "?" where it is not known, and those that were predicted."""
    gold = [[(s.text[a:b], tag) for (a, b), tag in zip(s.tokens, tags_of_tokens(s), strict=True)] for s in sentences]
    return gold, [[(s.text[a:b], tag) for a, b, tag in row] for s, row in zip(sentences, predicted, strict=True)]


def _characters(text, reading, window):
    """How many characters a window decides about: those from its units to the next unit after them."""
    start, stop = window.keep
    units = reading.units
    begin = units[start, 0] if start else 0
    end = units[stop, 0] if stop < len(units) else len(text)
    return int(end - begin) if start < len(units) else 0

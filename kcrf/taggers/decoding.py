"""Decodes text with a trained model: spans, their probabilities, the next best alternatives, scores."""

from bisect import bisect_left
from itertools import chain
from operator import itemgetter

import numpy as np

from kcrf.backend import JIT_PAYS_FOR_INFERENCE, keras, ops
from kcrf.layers import ConditionalRandomField, ViterbiTags
from kcrf.metrics import entity_scores, segmentation_scores
from kcrf.readers import CharacterReader, PieceReader, spans_of_units
from kcrf.readers.padding import bucket, padded
from kcrf.runs import RunFolder
from kcrf.taggers.networks import build_network, crf_of, mask_of

__all__ = ["Tagger", "ignore", "load_setup", "load_tagger"]

_SAMPLE = 64  # texts whose emissions stand for all


def ignore(characters):
    """The `on_batch` of callers that need none."""


class Tagger:
    """A model with its reader and its scheme: from texts to spans, in few shapes.

    Spans are `(start, end)` for words and `(start, end, label)` for entities, half-open, in characters. A word reaches
    to the next one, an entity to its last unit. Segmentation takes texts without white space.

    A softmax head decodes as a CRF whose transitions are all 0. The probability of a span is then the product of those
    of its tags and, under BIO, that of no I behind them.

    Args:
        model: What `build_network` returns.
        reader: The `CharacterReader` or `PieceReader` of its inputs.
        scheme: The `TagScheme` of its outputs.
        min_confidence: For entities. None takes those of the best path; a number takes all whose posterior is at least
            that, and of those that overlap the surest. F1 is highest, by what the model believes, near half of the F1
            to be had (Lipton et al., 2014, "Optimal Thresholding of Classifiers to Maximize F1 Measure"): where that
            is low, many entities are worth naming that are on no best path. Defaults to None.
    """

    def __init__(self, model, reader, scheme, min_confidence=None):
        self.min_confidence = min_confidence
        self.reader, self.scheme, self.crf = reader, scheme, crf_of(model)
        self.model = keras.Model(model.input, model.output)  # the same layers without an optimizer, to be saved
        self._chain, emissions = self.crf, model.output
        if self.crf is None:
            self._chain = ConditionalRandomField(transition_initializer="zeros", name="NoTransitions")
            emissions = self._chain(emissions, mask=mask_of(model.input))
        self._decoder = keras.Model(model.input, [emissions, ViterbiTags(self._chain)(emissions)])
        self._decoder.compile(jit_compile=JIT_PAYS_FOR_INFERENCE)

    def spans(self, texts, batch_size=64, on_batch=ignore, confidence=False):
        """The spans of each text, a list each.

        Args:
            texts: List of strings of any length.
            batch_size: Windows at a time. Defaults to 64.
            on_batch: Called after each batch with the number of characters it settled.
            confidence: Whether to add to each span, as its last member, the posterior probability that exactly this
                span is there. Defaults to False.
        """
        if self.min_confidence is not None:
            found = self._likely_spans(texts, batch_size, on_batch)
            return found if confidence else [[span[:-1] for span in row] for row in found]
        readings = self.reader.read(texts)
        tags = [[0] * len(reading.units) for reading in readings]
        batches = []
        for jobs, emissions, paths in self._decoded(readings, batch_size):
            for (number, window), path in zip(jobs, paths):
                start, stop = window.keep
                tags[number][start:stop] = _kept(window, path)
            if confidence:
                batches.append((jobs, emissions))
            on_batch(_settled(jobs, readings, texts))
        found = [self.scheme.decode(row) for row in tags]
        spans = [
            spans_of_units(self.scheme, reading.units, row, len(text))
            for text, reading, row in zip(texts, readings, found, strict=True)
        ]
        if not confidence:
            return spans
        sure = self._confidences(found, batches)
        return [[(*span, p) for span, p in zip(row, ps or [1.0])] for row, ps in zip(spans, sure, strict=True)]

    def _likely_spans(self, texts, batch_size, on_batch):
        """The entities whose posterior is at least `min_confidence`, with it."""
        readings = self.reader.read(texts)
        marginals = [np.zeros((len(reading.units), len(self.scheme))) for reading in readings]
        batches = []
        for jobs, emissions, _ in self._decoded(readings, batch_size):
            for (number, window), rows in zip(jobs, ops.convert_to_numpy(self._chain.marginals(emissions))):
                marginals[number][slice(*window.keep)] = _kept(window, rows)
            batches.append((jobs, emissions))
            on_batch(_settled(jobs, readings, texts))
        places = [sorted(_possible_spans(self.scheme, rows >= self.min_confidence)) for rows in marginals]
        sure = self._confidences(places, batches)
        found = []
        for text, reading, row, ps in zip(texts, readings, places, sure, strict=True):
            likely = [(p, place) for p, place in zip(ps, row, strict=True) if p >= self.min_confidence]
            ps, row = zip(*_without_overlaps(likely)) if likely else ((), ())
            spans = spans_of_units(self.scheme, reading.units, row, len(text))
            found.append([(*span, p) for span, p in zip(spans, ps, strict=True)])
        return found

    def words(self, texts, batch_size=64, on_batch=ignore):
        """The words of each text."""
        found = self.spans(texts, batch_size, on_batch)
        return [[text[start:end] for start, end in spans] for text, spans in zip(texts, found, strict=True)]

    def top_k(self, texts, k, batch_size=64, on_batch=ignore):
        """What the k most probable tag sequences of each text say, best first; those that say the same are one.

        Returns:
            For each text a list of `(probability, spans)`.
        """
        readings = self.reader.read(texts)
        paths = {}
        for jobs, emissions, _ in self._decoded(readings, batch_size):
            for (number, window), tags, logs in zip(jobs, *self._best(emissions, k)):
                ways = paths.setdefault((number, window.keep), {})
                for i in np.flatnonzero(logs > -np.inf):  # from the best on: of those alike where it counts, the first
                    ways.setdefault(tuple(_kept(window, tags[i])), logs[i])
            on_batch(_settled(jobs, readings, texts))
        found = []
        for number, (text, reading) in enumerate(zip(texts, readings, strict=True)):
            keeps = [window.keep for window in reading.windows if window.keep[0] < window.keep[1]]
            found.append(self._analyses(text, reading, _joined([paths[number, keep] for keep in keeps], k)))
        return found

    def _best(self, emissions, k):
        """The k best paths `(batch, k, time)` and their log probabilities `(batch, k)`."""
        tags, scores = self._chain.top_k(emissions, k)
        first = -ops.convert_to_numpy(self._chain.sparse_loss(tags[:, 0], ops.convert_to_tensor(emissions)))
        tags, scores = ops.convert_to_numpy(tags), ops.convert_to_numpy(scores)
        return tags, np.minimum(first[:, None] + scores - scores[:, :1], 0.0)

    def _analyses(self, text, reading, sequences):
        """`(probability, spans)` of tag sequences with their logs; those that say the same are one."""
        found = {}
        for tags, log in sequences:
            spans = tuple(spans_of_units(self.scheme, reading.units, self.scheme.decode(tags), len(text)))
            found[spans] = found.get(spans, 0.0) + float(np.exp(log))
        return sorted(((p, list(spans)) for spans, p in found.items()), key=lambda item: -item[0])

    def _decoded(self, readings, batch_size):
        """Yields `(jobs, emissions, paths)` batch by batch; a job is the number of a text and a window of it."""
        jobs = [(number, window) for number, reading in enumerate(readings) for window in reading.windows]
        jobs.sort(key=lambda job: _length(job[1].inputs))
        for first in range(0, len(jobs), batch_size):
            chosen = jobs[first : first + batch_size]
            batch = _inference_batch([window.inputs for _, window in chosen], batch_size)
            emissions, paths = self._decoder.predict_on_batch(batch)
            yield chosen, emissions[: len(chosen)], paths[: len(chosen)]

    def _confidences(self, spans, batches):
        """The posteriors of spans in units; each is asked of the window that decides about its first unit."""
        found = [[1.0] * len(row) for row in spans]
        for jobs, emissions in batches:
            asked = [_places(window, spans[number]) for number, window in jobs]
            values = self._chain.span_confidence(emissions, [[place for _, place in row] for row in asked], self.scheme)
            for (number, _), row, those in zip(jobs, asked, values, strict=True):
                for (index, _), value in zip(row, those.tolist(), strict=True):
                    found[number][index] = value
        return found

    def emissions(self, texts):
        """The emission scores of all units in the first window of each text, `(units, tags)`, of 64 texts at most."""
        windows = [reading.windows[0] for reading in self.reader.read(texts[:_SAMPLE]) if reading.windows]
        scores = self.model.predict_on_batch(_inference_batch([window.inputs for window in windows], _SAMPLE))
        return np.concatenate([row[window.positions] for row, window in zip(scores, windows)])

    def scores(self, sentences, training_words=None):
        """What this tagger finds in the texts of `Sentence`s, scored against their spans.

        Args:
            sentences: List of `kcrf.corpora.Sentence`.
            training_words: For segmentation: the words that count as known, or None.

        Returns:
            The figures of `segmentation_scores` or of `entity_scores`.
        """
        return self.score(sentences, self.spans([sentence.text for sentence in sentences]), training_words)

    def score(self, sentences, found, training_words=None):
        """The figures of `scores` for spans that were found before."""
        if self.scheme.types:
            return entity_scores([sentence.spans for sentence in sentences], found)
        gold, words = (
            [[s.text[start:end] for start, end in spans] for s, spans in zip(sentences, rows, strict=True)]
            for rows in ([sentence.spans for sentence in sentences], found)
        )
        return segmentation_scores(gold, words, training_words)


def _length(inputs):
    return len(next(iter(inputs.values())))


def _kept(window, path):
    """The tags of the units for which a window decides, from a path over its positions."""
    start, stop = window.keep
    return path[window.positions[start - window.first : stop - window.first]].tolist()


def _possible_spans(scheme, likely):
    """The entities all of whose tags are `likely`, `(units, tags)` bool: no other has a posterior as high."""
    found = []
    for label in scheme.types:
        (single,), (first, inside, last) = (scheme.encode([(0, length, label)], length) for length in (1, 3))
        found += [(start, start + 1, label) for start in np.flatnonzero(likely[:, single]).tolist()]
        for start in np.flatnonzero(likely[:, first]).tolist():
            for end in range(start + 1, len(likely)):
                if likely[end, last]:
                    found.append((start, end + 1, label))
                if not likely[end, inside]:
                    break
    return found


def _without_overlaps(likely):
    """Of pairs of a probability and a span the surest that do not overlap, from left to right."""
    chosen, taken = [], np.zeros(max(end for _, (_, end, *_) in likely), bool)
    for p, span in sorted(likely, key=lambda pair: -pair[0]):
        if not taken[span[0] : span[1]].any():
            taken[span[0] : span[1]] = True
            chosen.append((p, span))
    return sorted(chosen, key=lambda pair: pair[1])


def _settled(jobs, readings, texts):
    """For how many characters the windows of a batch decide."""
    return sum(_characters(readings[number], window, texts[number]) for number, window in jobs)


def _characters(reading, window, text):
    """For how many characters a window decides, those between its units and the next included."""
    start, stop = window.keep
    begin, end = (reading.units[i, 0] if i < len(reading.units) else len(text) for i in (start, stop))
    return int(end - (begin if start else 0))


def _places(window, spans):
    """`(index, (start, end[, label]))` in positions of the window for those of sorted spans that begin in its part."""
    (start, stop), first, places = window.keep, window.first, window.positions
    low, high = (bisect_left(spans, unit, key=itemgetter(0)) for unit in (start, stop))
    return [
        (index, (int(places[begin - first]), int(places[min(end - first, len(places)) - 1]) + 1, *label))
        for index, (begin, end, *label) in enumerate(spans[low:high], low)
    ]


def _joined(windows, k):
    """The k best sequences of one of the ways through each window, a dict of tags and log probability.

    Returns:
        `(tags, log probability)` pairs, best first.
    """
    beams = [(0.0, None)]  # log probability, and the last way with what was before it
    for ways in windows:
        longer = [(log + more, (before, tags)) for log, before in beams for tags, more in ways.items()]
        beams = sorted(longer, key=lambda beam: -beam[0])[:k]
    return [(_unrolled(last), log) for log, last in beams]


def _unrolled(last):
    tags = []
    while last is not None:
        last, way = last
        tags.append(way)
    return list(chain.from_iterable(reversed(tags)))


def _inference_batch(rows, batch_size):
    """Padded inputs; the number of rows is filled up to 1, 8, 64, ... or `batch_size`, so that few shapes occur."""
    length = bucket(max(map(_length, rows)))
    count = min(next(8**power for power in range(99) if 8**power >= len(rows)), max(batch_size, len(rows)))
    return padded(rows + [{name: [] for name in rows[0]}] * (count - len(rows)), length)


def load_tagger(path):
    """The `Tagger` of a run folder, ready to use.

    Raises:
        FileNotFoundError: `path` is no run folder, or misses a file.
        ValueError: It was written by a newer version, or a file in it is damaged.
    """
    folder = RunFolder(path)
    settings, reader = load_setup(folder)
    model = build_network(settings, reader, folder)
    folder.load_weights(model)
    return Tagger(model, reader, settings.tag_scheme(), settings.min_confidence)


def load_setup(folder):
    """The `Settings` and the reader in a `RunFolder`."""
    settings = folder.read_settings()
    return settings, (CharacterReader if settings.bert is None else PieceReader).load(folder)

"""Taggers with more than predictions: `TrainedTagger` and, with a Keras model, `KerasTagger`. Needs no Keras."""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from kcrf.corpora import Sentence
from kcrf.networks.network import KerasNetwork, TrainedNetwork
from kcrf.readers.padding import inference_batches
from kcrf.taggers.decoding import OnBatch, Tagger, ignore, texts_and_tokens
from kcrf.tags import TagScheme

_SAMPLE = 64  # the number of texts that `TrainedTagger.emissions` reads

Trained = TypeVar("Trained", bound=TrainedNetwork, covariant=True)


class TrainedTagger(Tagger[Trained]):
    """A `Tagger` with the network of a run folder, in Keras or linear, which can teach.

    Args:
        network: A `kcrf.networks.network.TrainedNetwork`.
        reader, min_probability, advice, metric: As for `Tagger`.
    """

    @property
    def model(self) -> Any:
        """The Keras model, without an optimizer, or the `kcrf.linear.LinearModel`."""
        return self.network.model

    @property
    def temperature(self) -> float:
        """All scores are divided by it before probabilities are computed."""
        return self.network.temperature

    def emissions(self, texts: Sequence[str]) -> np.ndarray:
        """The emission scores in the first window of each of the first 64 texts, concatenated: `(units, tags)`."""
        readings = self.reader.read(texts[:_SAMPLE])
        first = [reading._replace(windows=reading.windows[:1]) for reading in readings]
        rows: dict = {}
        for windows, inputs in inference_batches(first, _SAMPLE):
            for (number, window), scores in zip(windows, self.network.emissions(inputs)):
                rows[number] = scores[window.positions]
        return np.concatenate([rows[number] for number in sorted(rows)])

    def expected_counts(
        self,
        sentences: Sequence[Sentence],
        constraints: TagScheme | None = None,
        temperature: float = 1.0,
        batch_size: int = 64,
        on_batch: OnBatch = ignore,
        span_constraints: Sequence[Any] | None = None,
    ) -> list[list[tuple[np.ndarray, np.ndarray]]]:
        """The expected counts of tags and transitions in each window of the sentences.

        Args:
            sentences: List of `kcrf.corpora.Sentence`, whose tokens are used.
            constraints, temperature: As for `ConditionalRandomField.expected_counts`.
            batch_size, on_batch: As for `spans`.
            span_constraints: For each sentence the `SpanConstraints`, in units, on which the counts are conditioned.
                Defaults to None: no constraints.

        Returns:
            For each sentence a list with `(tags (units, tags), steps (tags, tags))` of each of its windows.
        """
        texts, tokens = texts_and_tokens(sentences)
        readings = self.reader.read(texts, tokens)
        counts_of_texts: list[dict] = [{} for _ in texts]
        limits = self._in_units(texts, readings) if span_constraints is None else span_constraints
        teacher = TrainedTagger(self.network.as_teacher(constraints, temperature), self.reader)
        for windows, scores, _ in teacher._decode(texts, readings, batch_size, on_batch, limits):
            counts = teacher.network.expected_counts(scores, constraints, temperature)
            for (number, window), tags, steps in zip(windows, *counts, strict=True):
                counts_of_texts[number][window.first, window.keep] = tags[window.positions], steps
        return [[of_text[window] for window in sorted(of_text)] for of_text in counts_of_texts]


class KerasTagger(TrainedTagger[KerasNetwork]):
    """A `Tagger` with a Keras model and its CRF.

    Args:
        network: A `kcrf.networks.network.KerasNetwork`.
        reader, min_probability, advice, metric: As for `Tagger`.
    """

    def with_advice(self, advice: str | None) -> "KerasTagger":
        """The same tagger with advice on its transitions."""
        return KerasTagger(self.network, self.reader, self.min_probability, advice, self.metric)

    @property
    def crf(self) -> Any:
        """Its `ConditionalRandomField`, or None."""
        return self.network.crf

    @property
    def crfs(self) -> dict[None, Any]:
        """Its `ConditionalRandomField` under None, or nothing."""
        return {} if self.crf is None else {None: self.crf}

"""`TextClassifier`: a label, several labels, or a number, for a text or a pair of texts."""

import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kcrf.chains import softmax
from kcrf.metrics import classification_scores, multilabel_scores, regression_scores
from kcrf.readers.padding import inference_batches
from kcrf.runs.errors import NOT_FINITE, DivergedError
from kcrf.runs.formats import probability_of
from kcrf.taggers.decoder import OnBatch, ignore
from kcrf.taggers.notebook import Results, to_html
from kcrf.taggers.spans import checked_list
from kcrf.taggers.suggestions import DEFAULT_STRATEGY, label_uncertainties
from kcrf.taggers.tagger import Tagger


@dataclass(frozen=True)
class Classification:
    """The prediction for a text.

    Attributes:
        label: The most probable label, a string; for regression a number. A model of texts with several labels gives a
            tuple of all labels whose probability is at least 0.5.
        probability: Its probability; of several labels, that they hold and no other. None for regression.
        probabilities: A dict with the probability of every label, in the order of the labels. Empty for regression.
    """

    label: Any
    probability: float | None = None
    probabilities: dict[str, float] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        return to_html(self)


class TextClassifier(Tagger[Classification]):
    """Classifies texts or pairs of texts with a trained model.

    Args:
        run_dir: A folder that `kcrf train --task classify` wrote, or a file that `kcrf export` wrote.

    Attributes:
        labels: The labels in their order, a tuple; empty for regression.
        pairs: Whether the model classifies pairs of texts.

    >>> classifier = TextClassifier("runs/reviews")             # doctest: +SKIP
    >>> classifier.classify("房间很干净，服务也好。")             # doctest: +SKIP
    Classification(label='positive', probability=0.98, probabilities={'negative': 0.02, 'positive': 0.98})
    """

    tasks = ("classify",)
    _verb = "classify"

    def _begin(self, network: Any, reader: Any, config: Any) -> None:
        data, facts = config.data, config.facts
        self.network, self.reader, self.metric = network, reader, config.training.metric or "accuracy"
        self.labels, self.pairs, self._max_length = data.labels, facts.pairs, data.max_length
        self._multilabel = facts.multilabel
        self._mean, self._deviation = facts.mean, facts.deviation

    def classify(self, text: str, text_b: str | None = None) -> Classification:
        """Classifies a text or a pair of texts."""
        return self.predict([text if text_b is None else (text, text_b)])[0]

    def predict(self, texts: Iterable[Any], batch_size: int = 64, on_batch: OnBatch = ignore) -> list[Classification]:
        """Classifies several texts.

        Args:
            texts: Iterable of strings, or of pairs, tuples of two strings. A text longer than the `max_length` of the
                run is read in windows, whose probabilities are averaged, weighted by length. Pairs are truncated.
            batch_size: Number of texts per batch. Defaults to 64.
            on_batch: Called after each batch with the number of its texts.

        Returns:
            A list with the `Classification` of each text.
        """
        outputs = self._outputs(texts, batch_size, on_batch)
        if not self.labels:
            numbers = outputs[:, 0] * self._deviation + self._mean
            return Results(Classification(number) for number in numbers.tolist())
        classifications: Results[Classification] = Results()
        for probabilities in outputs.tolist():
            by_label = dict(zip(self.labels, probabilities, strict=True))
            if self._multilabel:
                found = tuple(sorted(label for label, p in by_label.items() if p >= 0.5))
                classifications.append(Classification(found, probability_of(found, by_label), by_label))
            else:
                best = int(np.argmax(probabilities))
                classifications.append(Classification(self.labels[best], probabilities[best], by_label))
        return classifications

    classify_batch = predict  # by the name of the task

    def probabilities(self, texts: Iterable[Any], batch_size: int = 64, on_batch: OnBatch = ignore) -> np.ndarray:
        """The probability of each label, `(texts, labels)`; the arguments are as for `predict`."""
        if not self.labels:
            raise ValueError("needs a model with probabilities. Received: a model that predicts numbers (regression)")
        return self._outputs(texts, batch_size, on_batch)

    def _outputs(self, texts: Iterable[Any], batch_size: int, on_batch: OnBatch) -> np.ndarray:
        """The probabilities of each text, or its standardized number, in double precision, `(texts, labels)`."""
        items = [self._checked(text) for text in checked_list(texts, "classify", batch_size)]
        readings = self.reader.read_texts(items, self._max_length, whole=True)
        if self.pairs and any(reading.is_cut for reading in readings):
            warnings.warn(
                f"pairs of texts are cut to {self._max_length} positions; a larger `max_length` in training reads more",
                stacklevel=3,
            )
        lengths = [max(sum(window.length for window in reading.windows), 1) for reading in readings]
        outputs = np.zeros((len(items), len(self.labels) or 1))
        for windows, inputs in inference_batches(readings, batch_size, self.network.few_shapes):
            scores = np.asarray(self.network.scores(inputs)[: len(windows)], float)
            if not np.isfinite(scores).all():
                raise DivergedError(NOT_FINITE)
            weights = np.array([[max(window.length, 1) / lengths[number]] for number, window in windows])
            numbers = [number for number, _ in windows]
            np.add.at(outputs, numbers, weights * self._activated(scores))
            on_batch(sum(window is readings[number].windows[0] for number, window in windows))
        return outputs

    def _activated(self, scores: np.ndarray) -> np.ndarray:
        if self._multilabel:
            return (1 + np.tanh(scores / 2)) / 2  # the sigmoid, without overflow
        return softmax(scores) if self.labels else scores

    def _expected(
        self, texts: list[Any], batch_size: int, on_batch: OnBatch
    ) -> tuple[list[tuple[str, float]], np.ndarray]:
        probabilities = self.probabilities(texts, batch_size, on_batch)
        chosen = probabilities >= 0.5 if self._multilabel else np.eye(len(self.labels))[probabilities.argmax(axis=1)]
        found = [(self.labels[label], float(probabilities[text, label])) for text, label in np.argwhere(chosen)]
        return found, probabilities.sum(axis=0)

    def predictions(self, items: Sequence[Any], with_probabilities: bool = True) -> list[Classification]:
        return self.predict([item.texts for item in items])

    def score(
        self, items: Sequence[Any], predictions: Sequence[Classification], training_words: Any = None
    ) -> dict[str, Any]:
        gold, predicted = [item.label for item in items], [prediction.label for prediction in predictions]
        if self._multilabel:
            return multilabel_scores([item.labels for item in items], predicted, self.labels)
        if not self.labels:
            return regression_scores(list(map(float, gold)), predicted)
        return classification_scores(gold, predicted, self.labels)

    def uncertainties(
        self, texts: Iterable[Any], strategy: str = DEFAULT_STRATEGY, batch_size: int = 64, on_batch: OnBatch = ignore
    ) -> np.ndarray:
        """As `Tagger.uncertainties`. All strategies named after an entropy take the entropy of the labels."""
        probabilities = self.probabilities(texts, batch_size, on_batch)
        if not self._multilabel:
            return label_uncertainties(strategy, probabilities)
        decisions = np.stack([probabilities, 1 - probabilities], axis=-1).reshape(-1, 2)  # each label holds or not
        return label_uncertainties(strategy, decisions).reshape(probabilities.shape).sum(axis=1)

    def _plain_text(self, text: Any) -> str:
        return "\t".join(filter(None, self._checked(text)))

    def _checked(self, text: Any) -> tuple[str, str | None]:
        is_row = isinstance(text, Iterable) and not isinstance(text, (str, Mapping, Set))
        parts = tuple(part for part in text if part is not None) if is_row else (text,)
        if len(parts) != 1 + self.pairs or not all(isinstance(part, str) for part in parts):
            needed = "pairs of strings" if self.pairs else "strings"
            raise TypeError(f"The model needs {needed}. Received: {text!r}"[:200])
        return parts[0], parts[1] if self.pairs else None

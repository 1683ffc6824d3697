"""Classifies texts with a trained model: a label with the probability of every label, or a number.

Loading a run folder needs Keras; using an exported file does not.
"""

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from kcrf.metrics import classification_scores, regression_scores
from kcrf.readers.padding import inference_batches
from kcrf.runs.errors import NOT_FINITE, DivergedError
from kcrf.taggers.open_model import open_model
from kcrf.taggers.suggestions import Suggester
from kcrf.taggers.text_input import as_list
from kcrf.taggers.uncertainty import DEFAULT_STRATEGY, label_uncertainties


@dataclass(frozen=True)
class Classification:
    """The prediction for a text.

    Attributes:
        label: The most probable label, a string; for regression a number.
        probability: Its probability. None for regression.
        probabilities: A dict with the probability of every label, in the order of the labels. Empty for regression.
    """

    label: object
    probability: float | None = None
    probabilities: dict = field(default_factory=dict)


class Classifier:
    """Predicts labels or numbers with a network, a reader and labels.

    Args:
        network: A `kcrf.networks.network.ClassificationNetwork`.
        reader: The `CharacterReader` or `PieceReader` of its inputs.
        data: The `kcrf.runs.DataConfig` of the run, with the labels.
        facts: Its `kcrf.runs.DataFacts`: whether texts are pairs, and for regression mean and deviation.
        metric: The score by which the best epoch is chosen. Defaults to "accuracy".

    Attributes:
        labels: The labels, a tuple; empty for regression.
        pairs: Whether it classifies pairs of texts.
        crf, advice: None: a classifier has no transitions.
    """

    crf = advice = None
    crfs: dict[None, Any] = {}

    def __init__(self, network, reader, data, facts, metric="accuracy"):
        self.network, self.reader, self.metric = network, reader, metric
        self.labels, self.pairs, self._max_length = data.labels, facts.pairs, data.max_length
        self._mean, self._deviation = facts.mean, facts.deviation

    def with_advice(self, advice):
        """Returns the same classifier: there is no advice."""
        return self

    @property
    def model(self):
        """The Keras model."""
        return self.network.model

    def classify(self, texts, batch_size=64, on_batch=None):
        """A list with the `Classification` of each text.

        Args:
            texts: List of `(text, text_b)`; `text_b` is None for a single text.
            batch_size: The number of texts per batch. Defaults to 64.
            on_batch: Called after each batch with the number of its texts. Defaults to None.
        """
        scores = self._scores(texts, batch_size, on_batch)
        if not self.labels:
            numbers = scores[:, 0] * self._deviation + self._mean
            return [Classification(number) for number in numbers.tolist()]
        classifications = []
        for probabilities in _softmax(scores).tolist():
            best = int(np.argmax(probabilities))
            classifications.append(
                Classification(
                    self.labels[best], probabilities[best], dict(zip(self.labels, probabilities, strict=True))
                )
            )
        return classifications

    def probabilities(self, texts, batch_size=64, on_batch=None):
        """The probability of each label, `(texts, labels)`; the arguments are as for `classify`.

        Raises:
            ValueError: The model predicts numbers, without probabilities.
        """
        if not self.labels:
            raise ValueError("needs a model with probabilities. Received: a model that predicts numbers (regression)")
        return _softmax(self._scores(texts, batch_size, on_batch))

    def _scores(self, texts, batch_size, on_batch):
        """The outputs of the model in double precision, `(texts, labels)`."""
        readings = self.reader.read_texts(texts, self._max_length)
        scores = np.zeros((len(texts), len(self.labels) or 1))
        for windows, inputs in inference_batches(readings, batch_size, self.network.few_shapes):
            scores[[number for number, _ in windows]] = self.network.scores(inputs)[: len(windows)]
            if on_batch:
                on_batch(len(windows))
        if not np.isfinite(scores).all():
            raise DivergedError(NOT_FINITE)
        return scores

    def scores(self, examples):
        """The scores of the predictions for `kcrf.corpora.Example`s, a dict."""
        return self.score(examples, self.classify([example.texts for example in examples]))

    def score(self, examples, classifications):
        """As `scores`, for `Classification`s that have been predicted before."""
        gold, predicted = (
            [example.label for example in examples],
            [classification.label for classification in classifications],
        )
        if not self.labels:
            return regression_scores(list(map(float, gold)), predicted)
        return classification_scores(gold, predicted, self.labels)


def _softmax(scores):
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))  # (texts, labels)
    return scores / scores.sum(axis=1, keepdims=True)


def load_classifier(path):
    """Loads the classifier of a run folder or of an exported file.

    Raises:
        FileNotFoundError: There is no run folder or file, or a file is missing.
        ValueError: It was written by a newer version or for another task, or a file in it is damaged.
    """
    network, setup = open_model(path, ("classify",))
    config = setup.config
    return Classifier(network, setup.reader, config.data, config.facts, config.training.metric)


class TextClassifier(Suggester[Classification]):
    """Classifies texts or pairs of texts with a trained model.

    Args:
        run_dir: A folder that `kcrf train --task classify` wrote, or a file that `kcrf export` wrote.

    Attributes:
        labels: The labels in their order, a tuple; empty for regression.
        pairs: Whether the model classifies pairs of texts.

    Raises:
        FileNotFoundError: `run_dir` is not a run folder, or a file is missing.
        ValueError: `run_dir` was written by a newer version or for another task, or a file in it is damaged.

    Example:

        >>> classifier = TextClassifier("runs/reviews")             # doctest: +SKIP
        >>> classifier.classify("房间很干净，服务也好。")             # doctest: +SKIP
        Classification(label='positive', probability=0.98, probabilities={'negative': 0.02, 'positive': 0.98})
    """

    def __init__(self, run_dir: str | PathLike[str]) -> None:
        self._classifier = load_classifier(run_dir)
        self.labels, self.pairs = self._classifier.labels, self._classifier.pairs

    def classify(self, text: str, text_b: str | None = None) -> Classification:
        """Classifies a text or a pair of texts."""
        return self.classify_batch([text if text_b is None else (text, text_b)])[0]

    def classify_batch(
        self, texts: Iterable[Any], batch_size: int = 64, on_batch: Callable[[int], object] | None = None
    ) -> list[Classification]:
        """Classifies several texts.

        Args:
            texts: Iterable of strings; for pairs, of tuples of two strings. Texts are truncated to the `max_length` of
                the run.
            batch_size: Number of texts per batch. Defaults to 64.
            on_batch: Called after each batch with the number of its texts. Defaults to None.

        Returns:
            A list with the `Classification` of each text.

        Raises:
            TypeError: `texts` is a string or a mapping, or contains pairs for a model of single texts, or vice versa.
        """
        if isinstance(texts, (str, Mapping)):
            raise TypeError(f"`texts` must be a list; for one text call `classify`. Received: {texts!r}"[:200])
        return self._classifier.classify([self._checked(text) for text in texts], batch_size, on_batch)

    def uncertainties(
        self,
        texts: Iterable[Any],
        strategy: str = DEFAULT_STRATEGY,
        batch_size: int = 64,
        on_batch: Callable[[int], object] | None = None,
    ) -> np.ndarray:
        """How uncertain the model is about each text, an array; the arguments are as for `suggest`.

        The entropy is that of the labels, for all strategies that are named after it.
        """
        checked = [self._checked(text) for text in as_list(texts, "suggest")]
        return label_uncertainties(strategy, self._classifier.probabilities(checked, batch_size, on_batch))

    def _predictions(self, texts, batch_size):
        return self.classify_batch(texts, batch_size)

    def _plain_text(self, text):
        return "\t".join(filter(None, self._checked(text)))

    def _checked(self, text):
        is_row = isinstance(text, Iterable) and not isinstance(text, (str, Mapping, Set))
        parts = tuple(text) if is_row else (text,)
        if len(parts) != 1 + self.pairs or not all(isinstance(part, str) for part in parts):
            needed = "pairs of strings" if self.pairs else "strings"
            raise TypeError(f"The model needs {needed}. Received: {text!r}"[:200])
        return (*parts, None)[:2]

"""`Tagger`, the base of the classes that use a trained model, and `SpanTagger`, of those that predict spans."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from html import escape
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from kcrf.corpora import Example, Sentence
from kcrf.corpora.splits import NearDuplicates
from kcrf.runs import RunFolder
from kcrf.runs.formats import read_log, read_predictions, read_scores
from kcrf.runs.names import LOG, PREDICTIONS, SCORES
from kcrf.taggers.decoder import Decoder, OnBatch, ignore, parts_of_sentences
from kcrf.taggers.estimates import Estimate, HeldOut, estimate_of, held_out_of, unseen_counts
from kcrf.taggers.notebook import Results, Spans, in_style
from kcrf.taggers.open_model import Run, RunPath, open_model, open_run
from kcrf.taggers.probabilities import join_analyses
from kcrf.taggers.scoring import score_spans
from kcrf.taggers.spans import Part, Span, checked_list, one_per_text, source_of
from kcrf.taggers.suggestions import (
    DEFAULT_STRATEGY,
    Suggestion,
    at_once,
    distinct,
    measure_of,
    most_uncertain,
    score_of,
    sums_of,
)

Result = TypeVar("Result")
_MOST_LABELS = 8  # in the `repr` of a tagger


class Tagger(ABC, Generic[Result]):
    """Base of the classes that use a trained model.

    `tagger(texts)` and `tagger.predict(texts)` return a list with the result of each text: a list of `Span`s, or a
    `Classification`. Each class has a method for one text, named by its task, such as `segment(text)`.

    All of them raise FileNotFoundError for a folder that is no run, and ValueError for a run of another task or of a
    newer version, for damaged files, and for spans that overlap, are not in the text or have an unknown label.

    Attributes:
        tasks: The tasks of the models.
        config: The `kcrf.runs.RunConfig`.
        network: The network of the model.
        reader: The reader of its inputs.
        labels: The entity types, the classes of words or tokens, or the labels of texts, a tuple. Empty for words
            without classes and for regression.
        metric: The score by which training chooses the best epoch.
        advice: After training, a sentence about the transitions of the CRF, as `kcrf.metrics.advice` returns it. None
            without a CRF and after loading.
        crf: The `ConditionalRandomField` of a Keras model, or None.
        crfs: The same as a dict, under None; empty without a CRF.
        run: The run folder or exported file. None for a tagger that was not loaded from one.
    """

    tasks: ClassVar[tuple[str, ...]]
    config: Any
    _verb: ClassVar[str]  # the method for one text
    network: Any
    reader: Any
    labels: tuple[str, ...]
    metric: str
    advice: str | None = None
    counts: Any = None  # after training, `kcrf.metrics.bootstrap.span_counts` of the part that was scored last
    curve: Any = None  # after cross-validation, the `kcrf.metrics.learning_curves.LearningCurve`
    crf: Any = None
    run: Path | None = None
    _standard: str | None = None  # of a model of several

    def __init__(self, run_dir: RunPath) -> None:
        self._load(run_dir)

    @classmethod
    def of(cls, network: Any, reader: Any, config: Any) -> Self:
        """The tagger of a network of `kcrf.networks.network`, without a run folder."""
        tagger = cls.__new__(cls)
        tagger.config = config
        tagger._begin(network, reader, config)
        return tagger

    def _load(self, run: RunPath, standard: str | None = None) -> None:
        network, setup = open_model(run, self.tasks, standard)
        self.config, self._standard = setup.config, standard
        self._begin(network, setup.reader, setup.config)
        self.run = Path(open_run(run).path if isinstance(run, Run) else run)

    @abstractmethod
    def _begin(self, network: Any, reader: Any, config: Any) -> None:
        """Sets the attributes."""

    @property
    def model(self) -> Any:
        """The Keras model, without an optimizer, or the `kcrf.linear.LinearModel`."""
        return self.network.model

    @property
    def crfs(self) -> dict[None, Any]:
        """The `ConditionalRandomField` under None, or nothing."""
        return {} if self.crf is None else {None: self.crf}

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(f'{name} {value}' for name, value in self._facts().items())}>"

    def _repr_html_(self) -> str:
        """The facts, and the curves of training."""
        from kcrf.reports.charts import curves

        rows = (f"<b>{name}</b> {escape(str(value))}<br>" for name, value in self._facts().items())
        return in_style(
            f'<div class="kcrf" style="line-height:1.5">{"".join(rows)}{curves(self._read(LOG, read_log) or [])}</div>'
        )

    def _facts(self) -> dict[str, Any]:
        """Describes the model and its score for people."""
        from kcrf.reports.tables import SETS, TITLES

        labels = ", ".join(self.labels[:_MOST_LABELS]) + ", …" * (len(self.labels) > _MOST_LABELS)
        facts = {"run": self.run, "task": self.config.task.name, "labels": labels}
        facts["encoder"] = self.config.model.bert or self.config.model.encoder
        scores = self._read(SCORES, read_scores) or {}
        if scores:
            part = max(scores, key=list(SETS)[::-1].index)  # the test set, if there is one
            facts[f"{TITLES[self.metric]} on the {SETS[part]}"] = f"{scores[part][self.metric]:.4f}"
        return {name: value for name, value in facts.items() if value}

    def _read(self, name: str, read: Callable[[Path], Any]) -> Any:
        """Reads a file of the run. Returns None if there is no such file, as for exported models."""
        path = None if self.run is None else RunFolder(self.run).file(name)
        return read(path) if path and path.is_file() else None

    @abstractmethod
    def predict(self, texts: Iterable[Any], batch_size: int = 64, on_batch: OnBatch = ignore) -> list[Result]:
        """A list with the result of each text."""

    def __call__(self, texts: Iterable[Any]) -> list[Result]:
        return self.predict(texts)

    def scores(self, items: Sequence[Any], training_words: Any = None) -> dict[str, Any]:
        """The scores of `kcrf.metrics` for labeled data in all forms that `train_tagger` takes, a dict.

        For segmentation, `training_words` is the set of in-vocabulary words.
        """
        if not all(isinstance(item, Sentence | Example) for item in items):
            items = self.config.task.check("items", items)
        return self.score(items, self.predictions(items, with_probabilities=False), training_words)

    @abstractmethod
    def predictions(self, items: Sequence[Any], with_probabilities: bool = True) -> list[Result]:
        """The predictions for labeled items, a list, for `score`."""

    @abstractmethod
    def score(self, items: Sequence[Any], predictions: Sequence[Result], training_words: Any = None) -> dict[str, Any]:
        """As `scores`, for the result of `predictions`."""

    @abstractmethod
    def uncertainties(
        self, texts: Iterable[Any], strategy: str = DEFAULT_STRATEGY, batch_size: int = 64, on_batch: OnBatch = ignore
    ) -> np.ndarray:
        """The uncertainty of the model about each text, an array. The arguments are as for `suggest`."""

    def estimate(self, texts: Iterable[Any], batch_size: int = 64, on_batch: OnBatch = ignore) -> Estimate:
        """How good the model is on texts without labels: expected precision, recall and F1, with intervals.

        >>> tagger.estimate(texts).all.f                              # doctest: +SKIP
        Range(value=0.872, low=0.851, high=0.893)
        """
        unseen_in = partial(unseen_counts, self.network, self.reader)
        parts = at_once(texts if isinstance(texts, Iterator) else checked_list(texts, self._verb, batch_size))
        rows = (
            (len(part), *self._expected(part, batch_size, on_batch), unseen_in(list(map(self._plain_text, part))))
            for part in parts
        )
        return estimate_of(rows, self.labels, self._held_out(unseen_in))

    def _held_out(self, unseen_in: Callable[[list[str]], Any]) -> HeldOut:
        """What the predictions for the held-out texts of the run say."""
        rows = self._read(PREDICTIONS, read_predictions) or []
        return held_out_of([row for row in rows if self._standard in (None, row.get("standard"))], unseen_in)

    @abstractmethod
    def _expected(
        self, texts: list[Any], batch_size: int, on_batch: OnBatch
    ) -> tuple[list[tuple[str, float]], np.ndarray]:
        """The label and the probability of each prediction, and the expected number of each label in the texts."""

    def suggest(
        self,
        texts: Iterable[Any],
        count: int = 100,
        strategy: str = DEFAULT_STRATEGY,
        labeled: Iterable[Any] = (),
        batch_size: int = 64,
        on_batch: OnBatch = ignore,
    ) -> list[Suggestion[Result]]:
        """Suggests which of the texts to label next, the most useful text first.

        These are the texts about which the model is most uncertain. A text is omitted if it is empty, or nearly the
        same as a text that was chosen before it or that is already labeled (see
        `kcrf.corpora.splits.NearDuplicates`).

        Args:
            texts: Iterable of unlabeled texts, as `predict` takes them. A sequence may read its texts when they are
                needed: it is iterated once, and then indexed.
            count: How many texts to suggest. Defaults to 100.
            strategy: The measure of uncertainty (Settles and Craven, 2008, "An Analysis of Active Learning Strategies
                for Sequence Labeling Tasks"). "mean-entropy": the entropy of the tag sequences, divided by the number
                of tokens. "token-entropy": the mean entropy of the tags, without regard to their neighbors.
                "sequence-entropy": the entropy of the tag sequences, which prefers long texts. "least-confidence":
                minus the log probability of the best tag sequence, which prefers long texts as well. Defaults to
                "mean-entropy".
            labeled: Iterable of the texts that are labeled, such as the training set: strings, `Sentence`s,
                lists of words or of pairs of a word and its tag. Defaults to no texts.
            batch_size: Number of windows of up to 128 positions per batch. Defaults to 64.
            on_batch: Called after each batch with the number of characters that have been read.

        Returns:
            A list of at most `count` `Suggestion`s.
        """
        measure_of(strategy)
        if not isinstance(count, int | np.integer) or count < 1:
            raise ValueError(f"`count` must be a positive integer. Received: {count!r}")
        is_sequence = isinstance(texts, Sequence) and not isinstance(texts, str)
        sequence: Any = texts if is_sequence else checked_list(texts, "suggest")
        parts = (self.uncertainties(part, strategy, batch_size, on_batch) for part in at_once(sequence))
        scores = np.concatenate([np.zeros(0), *parts])
        seen = NearDuplicates(map(self._labeled_text, checked_list(labeled, "suggest")))
        chosen = distinct(most_uncertain(scores), lambda index: self._plain_text(sequence[index]), seen)
        suggestions = []
        for part in at_once(islice(chosen, count)):
            items = [sequence[index] for index in part]
            rows = zip(part, items, self.predict(items, batch_size), strict=True)
            suggestions += [Suggestion(index, item, float(scores[index]), found) for index, item, found in rows]
        return suggestions

    @abstractmethod
    def _plain_text(self, text: Any) -> str:
        """The text as a string, by which near-duplicates are found."""

    def _labeled_text(self, item: Any) -> str:
        """The text of an item of the training set."""
        if isinstance(item, (str, Sentence)):
            return item if isinstance(item, str) else item.text
        if isinstance(item, Example):
            item = [text for text in item.texts if text is not None]
        elif isinstance(item, list) and all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in item):
            item = [word for word, _ in item]
        return self._plain_text(item)


class SpanTagger(Tagger[list[Span]]):
    """Base of the classes that predict words, entities or the classes of tokens.

    Attributes:
        decoder: The `Decoder`.
    """

    decoder: Decoder[Any]
    _with_labels = True

    def _begin(self, network: Any, reader: Any, config: Any) -> None:
        self.decoder = Decoder(network, reader, config.model.min_probability)
        self.network, self.reader = network, reader
        self.labels, self.crf = network.scheme.types, getattr(network, "crf", None)
        usual = "accuracy" if network.scheme.is_of_tokens else "joint_f" if self.decoder.has_word_labels else "f"
        self.metric = config.training.metric or usual

    @property
    def scheme(self) -> Any:
        """The `kcrf.tags.TagScheme` of the network."""
        return self.network.scheme

    def predict(
        self,
        texts: Iterable[Any],
        batch_size: int = 64,
        on_batch: OnBatch = ignore,
        spans: Iterable[Iterable[Any]] | None = None,
    ) -> list[list[Span]]:
        """The spans of several texts, with their posterior probabilities.

        Args:
            texts: Iterable of texts of any length, as the method for one text takes them.
            batch_size: Number of windows of up to 128 positions per batch. Defaults to 64.
            on_batch: Called after each batch with the number of characters that have been tagged.
            spans: For each text the spans that you already know: `(start, end, label)`, `(start, end)` or `Span`. All
                probabilities are conditioned on them. Defaults to None: no spans.

        Returns:
            For each text a list of `Span`s from left to right.
        """
        texts = checked_list(texts, self._verb, batch_size)
        parts_of_texts = self._parts(texts, spans, batch_size)
        found = iter(self.decoder.spans(list(chain(*parts_of_texts)), batch_size, on_batch, self._with_labels))
        results: Results[list[Span]] = Results()
        for text, parts in zip(texts, parts_of_texts, strict=True):
            spans_of_parts = (part.as_counted(self._completed(part, next(found))) for part in parts)
            results.append(Spans(chain.from_iterable(spans_of_parts), source_of(text, parts)))
        return results

    def _completed(self, part: Part, spans: list[Span]) -> list[Span]:
        return spans

    def k_best(self, text: Any, k: int = 5, spans: Iterable[Any] = ()) -> list[tuple[list[Span], float]]:
        """The k best analyses of a text.

        Args:
            text: A text, as the other methods take it.
            k: The number of analyses. Defaults to 5.
            spans: Spans that you already know, as for `predict`. Defaults to no spans.

        Returns:
            A list of at most k `(spans, probability)`, best first. The spans have no probabilities of their own.
        """
        return self.k_best_batch([text], k, spans=[spans])[0]

    def k_best_batch(
        self,
        texts: Iterable[Any],
        k: int = 5,
        batch_size: int = 64,
        on_batch: OnBatch = ignore,
        spans: Iterable[Iterable[Any]] | None = None,
    ) -> list[list[tuple[list[Span], float]]]:
        """A list with the result of `k_best` for each text; the other arguments are as for `predict`."""
        texts = checked_list(texts, self._verb, batch_size)
        parts_of_texts = self._parts(texts, spans, batch_size)
        parts = list(chain(*parts_of_texts))
        found = iter(self.decoder.k_best(parts, k, batch_size, on_batch, self._with_labels))
        results: list[list[tuple[list[Span], float]]] = []
        for text, of_text in zip(texts, parts_of_texts, strict=True):
            rows = [(part, next(found)) for part in of_text]
            analyses = [[(part.as_counted(self._completed(part, spans)), p) for spans, p in row] for part, row in rows]
            source = source_of(text, of_text)
            results.append([(Spans(best, source), p) for best, p in join_analyses(analyses, k)])
        return results

    def uncertainties(
        self, texts: Iterable[Any], strategy: str = DEFAULT_STRATEGY, batch_size: int = 64, on_batch: OnBatch = ignore
    ) -> np.ndarray:
        measure, parts_of_texts = measure_of(strategy), self._parts(texts, None, batch_size)
        sums = self.decoder.uncertainties(list(chain(*parts_of_texts)), measure, batch_size, on_batch)
        counts = list(map(len, parts_of_texts))
        return score_of(strategy, *(sums_of(values, counts) for values in sums))

    def _expected(
        self, texts: list[Any], batch_size: int, on_batch: OnBatch
    ) -> tuple[list[tuple[str, float]], np.ndarray]:
        parts = list(chain(*self._parts(texts, None, batch_size)))
        spans, true = self.decoder.spans_and_begins(parts, batch_size, on_batch, self._with_labels)
        totals = true.sum(axis=0) if self.labels else true.sum(keepdims=True)[0]
        return [(span.label, float(span.probability or 0.0)) for row in spans for span in row], totals

    def predictions(self, items: Sequence[Sentence], with_probabilities: bool = True) -> list[list[Span]]:
        return self.decoder.spans(parts_of_sentences(items), with_probabilities=with_probabilities)

    def predictions_and_facts(self, items: Sequence[Sentence]) -> list[tuple[list[Span], dict[str, Any]]]:
        """The predictions for labeled items, and for `predictions.jsonl` how many spans the model expects there."""
        rows = zip(items, *self.decoder.spans_and_begins(parts_of_sentences(items)), strict=True)
        return [(found, {} if s.unknown else {"expected": round(float(number.sum()), 4)}) for s, found, number in rows]

    def score(
        self, items: Sequence[Sentence], predictions: Sequence[list[Span]], training_words: Any = None
    ) -> dict[str, Any]:
        predicted = [[span.key for span in spans] for spans in predictions]
        return score_spans(self.scheme, items, predicted, training_words)

    def _parts(self, texts: Iterable[Any], spans: Iterable[Iterable[Any]] | None, batch_size: int) -> list[list[Part]]:
        """The parts of each text, with the constraints of the user's spans."""
        checked = checked_list(texts, self._verb, batch_size)
        pairs = zip(checked, one_per_text(spans, checked), strict=True)
        return [self._parts_of_text(text, of_text) for text, of_text in pairs]

    @abstractmethod
    def _parts_of_text(self, text: Any, spans: Iterable[Any]) -> list[Part]:
        """The parts of a text."""

    def _plain_text(self, text: Any) -> str:
        (part,) = self._parts_of_text(text, ())
        return part.text

"""Cross-validation of linear models of few sentences: the final model learns all of them, the folds judge it."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kcrf.corpora import Sentence
from kcrf.corpora.sentences import for_each_group
from kcrf.metrics.learning_curves import LearningCurve
from kcrf.taggers.coverage import probabilities_of_gold
from kcrf.taggers.decoder import parts_of_sentences
from kcrf.taggers.entity_recognizer import EntityRecognizer
from kcrf.taggers.estimates import unseen_counts
from kcrf.taggers.spans import Span
from kcrf.training import linear
from kcrf.training.data import FOLDS
from kcrf.training.plan import RunPlan, plan_run
from kcrf.training.stages import STAGES

_TEMPERATURES = np.geomspace(0.6, 3.2, 6)
_FEWEST = 30  # predictions from which a temperature is estimated


class FoldsTagger:
    """Predicts entities of each sentence of a training set with a model that was trained without this sentence.

    `taggers` has the model for each sentence.
    """

    def __init__(self, taggers: Sequence[Any], curve: LearningCurve | None = None) -> None:
        self._taggers, self.curve, self.metric = taggers, curve, taggers[0].metric

    def predictions(self, items: Sequence[Sentence], with_probabilities: bool = True) -> list[list[Span]]:
        """As `Tagger.predictions` for the training set."""
        return for_each_group(self._taggers, lambda tagger, part: tagger.predictions(part, with_probabilities), items)

    def scores(self, items: Sequence[Sentence]) -> dict[str, Any]:
        """As `Tagger.scores` for the training set."""
        return self._taggers[0].score(items, self.predictions(items, with_probabilities=False))

    def calibrate(self, items: Sequence[Sentence]) -> float:
        """Sets the temperature so that the probabilities add up to the number of right predictions; 1 for a few.

        The most likely temperature of the tags depends on tags outside of entities, and is wrong for entities.
        """
        means, rate = [], 0.0
        for temperature in _TEMPERATURES.tolist():
            self._set_temperature(temperature)
            rows = zip(items, self.predictions(items), strict=True)
            pairs = [(span.probability, span.key in item.spans) for item, spans in rows for span in spans]
            if len(pairs) < _FEWEST:
                return self._set_temperature(1.0)
            mean, rate = np.mean(np.array(pairs, float), axis=0).tolist()
            means.append(mean)
        found = np.interp(rate, means[::-1], np.log(_TEMPERATURES)[::-1])  # probabilities fall with the temperature
        return self._set_temperature(round(math.exp(found), 2))

    def _set_temperature(self, value: float) -> float:
        for tagger in self._taggers:
            tagger.network.temperature = value
        return value

    def facts(self, items: Sequence[Sentence]) -> list[dict[str, Any]]:
        """The facts of `predictions.jsonl` that a model which has learned the sentences cannot compute."""
        return for_each_group(self._taggers, _facts, items)


class HeldOutTagger(FoldsTagger):
    """Predicts held-out sentences with a network that has not learned them."""

    def __init__(self, tagger: Any, trainer: Any, count: int) -> None:
        super().__init__([tagger] * count)
        self._trainer = trainer

    def calibrate(self, items: Sequence[Sentence]) -> float:
        """Fits the temperature of the tags: the predictions are too few to fit that of the entities."""
        return self._trainer.calibrate(self._taggers[0], items)

    def facts(self, items: Sequence[Sentence]) -> list[dict[str, Any]]:
        """As in `FoldsTagger`, without the expected number of entities, whose ratio to the real one is uncertain."""
        return [{name: value for name, value in row.items() if name != "expected"} for row in super().facts(items)]


def _facts(tagger: Any, items: list[Sentence]) -> list[dict[str, Any]]:
    """How many entities a model expects in each sentence, how many features it lacks, and how likely real ones are."""
    unseen = [unseen_counts(tagger.network, tagger.reader, [item.text], [item.tokens]) for item in items]
    rows: list[dict[str, Any]] = [{"unseen": counts.astype(int).tolist()} for counts in unseen]
    if not isinstance(tagger, EntityRecognizer):
        return rows
    _, expected = tagger.decoder.spans_and_begins(parts_of_sentences(items))
    likely = probabilities_of_gold(tagger.decoder, items)
    return [
        {**row, "expected": round(number, 4), "likely": of_gold}
        for row, number, of_gold in zip(rows, expected.sum(axis=1).tolist(), likely, strict=True)
    ]


def train_folds(plan: RunPlan) -> FoldsTagger:
    """Trains a model without each fold, and for the learning curve two models of one fold each, with the settings of
    the final model."""
    values, items = plan.config.flat(), plan.data.parts["train"]
    user = replace(plan.run.user, augment=values["augment"] or 0, augment_by=values["augment_by"], solver="lbfgs")
    order = np.random.default_rng([plan.config.training.seed, FOLDS]).permutation(len(items))
    fold_of = np.argsort(order) % FOLDS  # (sentences,)

    def trained(chosen: np.ndarray) -> tuple[Any, float]:
        """The tagger that has learned the chosen sentences, and its score on the others."""
        train, others = ([items[number] for number in np.flatnonzero(part)] for part in (chosen, ~chosen))
        parts = {"train": train, "valid": others}
        own = plan_run(user, replace(plan.data, parts=parts, copies=None), table=STAGES)
        tagger = linear.linear_tagger(own, linear.train_linear_models(own, own.windows))
        return tagger, tagger.scores(others)[tagger.metric]

    taggers, scores = zip(*(trained(fold_of != fold) for fold in range(FOLDS)), strict=True)
    few = [trained(fold_of == fold)[1] for fold in range(2)]
    sizes = [int((fold_of == 0).sum()), int((fold_of != 0).sum())]
    draws = np.stack([few, np.reshape(scores, (2, -1)).mean(axis=1)], axis=1)  # (draws, sizes)
    curve = LearningCurve(taggers[0].metric, len(items), sizes, draws) if any(few) else None
    return FoldsTagger([taggers[fold] for fold in fold_of], curve)


def fit_linear(plan: RunPlan, folder: Any, progress: Any) -> tuple[Any, dict[str, Any]]:
    """Trains the linear model of a run, after the models of its folds if it learns all sentences."""
    judge = train_folds(plan) if plan.data.apart else None
    return linear.fit_linear(replace(plan, judge=judge), folder, progress)

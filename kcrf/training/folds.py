"""Judges a model that learns all of few sentences by other models: each predicts sentences that it has not learned."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kcrf.corpora import Sentence
from kcrf.corpora.sentences import for_each_group
from kcrf.metrics.learning_curves import LearningCurve
from kcrf.progress_bars import bar, quiet
from kcrf.runs.formats import probabilities_of
from kcrf.taggers.coverage import probabilities_of_gold
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
    """Predicts each sentence of a part with its own tagger, which was trained without this sentence.

    With a `trainer`, all have the same network, and are too few to calibrate the probabilities of entities.
    """

    def __init__(self, taggers: Sequence[Any], curve: LearningCurve | None = None, trainer: Any = None) -> None:
        self._taggers, self.curve, self.metric, self._trainer = taggers, curve, taggers[0].metric, trainer

    def predictions(self, items: Sequence[Sentence], with_probabilities: bool = True) -> list[list[Span]]:
        """As `Tagger.predictions` for the training set."""
        return for_each_group(self._taggers, lambda tagger, part: tagger.predictions(part, with_probabilities), items)

    def scores(self, items: Sequence[Sentence]) -> dict[str, Any]:
        """As `Tagger.scores` for the training set."""
        return self._taggers[0].score(items, self.predictions(items, with_probabilities=False))

    def calibrate(self, items: list[Sentence]) -> float:
        """Sets the temperature so that the probabilities add up to the number of right predictions; 1 for a few. The
        most likely temperature of the tags depends on tags outside of entities, and is wrong for entities."""
        if self._trainer:
            return self._trainer.calibrate(self._taggers[0], items)
        points = []  # how many more are right than expected, which grows with the temperature, and its logarithm
        for temperature in _TEMPERATURES.tolist():
            self._set_temperature(temperature)
            found = [[(*span.key, span.probability) for span in spans] for spans in self.predictions(items)]
            rows = [{"gold": s.spans, "found": s.scored(spans)} for s, spans in zip(items, found, strict=True)]
            if len(pairs := np.array(probabilities_of(rows), float)) >= _FEWEST:
                points.append(((pairs @ [-1, 1]).mean(), math.log(temperature)))
        best = np.exp(np.interp(0, *np.transpose(points))) if points else 1.0
        return self._set_temperature(round(float(best), 2))

    def _set_temperature(self, value: float) -> float:
        for tagger in self._taggers:
            tagger.network.temperature = value
        return value

    def predictions_and_facts(self, items: Sequence[Sentence]) -> list[tuple[list[Span], dict[str, Any]]]:
        """The predictions, and the facts of `predictions.jsonl` that a model cannot compute of what it has learned."""
        return for_each_group(self._taggers, self._of_group, items)

    def _of_group(self, tagger: Any, items: list[Sentence]) -> list[tuple[list[Span], dict[str, Any]]]:
        """Also how many features a tagger lacks, of how many, how likely real entities are, and how many it expects."""
        rows = tagger.predictions_and_facts(items)
        for (_, facts), item in zip(rows, items, strict=True):
            facts["unseen"] = unseen_counts(tagger.network, tagger.reader, [item.text]).astype(int).tolist()
            facts["fold"] = self._taggers.index(tagger)
        if isinstance(tagger, EntityRecognizer):
            for (_, facts), likely in zip(rows, probabilities_of_gold(tagger.decoder, items), strict=True):
                facts["likely"] = likely
        return rows


def train_folds(plan: RunPlan) -> FoldsTagger:
    """Trains a model without each fold, and for the learning curve two models of a fold, by the user's settings."""
    values, items = plan.config.flat(), plan.data.parts["train"]
    user = replace(plan.run.user, augment=values["augment"] or 0, augment_by=values["augment_by"])
    order = np.random.default_rng([plan.config.training.seed, FOLDS]).permutation(len(items))
    fold_of = np.argsort(order) % FOLDS  # (sentences,)

    def trained(chosen: np.ndarray) -> tuple[Any, float]:
        """The tagger that has learned the chosen sentences, and its score on the others."""
        train, others = ([items[number] for number in np.flatnonzero(part)] for part in (chosen, ~chosen))
        data = replace(plan.data, parts={"train": train, "valid": others}, copies=None)
        own = plan_run(user, data, table=STAGES)
        tagger = linear.linear_tagger(own, linear.train_linear_models(own, own.windows))
        shown.advance(task)
        return tagger, tagger.scores(others)[tagger.metric]

    with bar() as shown, quiet(True):  # one bar for all
        task = shown.add_task("training on parts, to score the model", total=FOLDS + 2)
        taggers, scores = zip(*(trained(fold_of != fold) for fold in range(FOLDS)), strict=True)
        few = [trained(fold_of == fold)[1] for fold in range(2)]
    draws = np.stack([few, np.reshape(scores, (2, -1)).mean(axis=1)], axis=1)  # (draws, sizes)
    sizes = [int((fold_of == 0).sum()), int((fold_of != 0).sum())]
    curve = LearningCurve(taggers[0].metric, len(items), sizes, draws) if any(few) else None
    return FoldsTagger([taggers[fold] for fold in fold_of], curve)


def fit_linear(plan: RunPlan, folder: Any, progress: Any) -> tuple[Any, dict[str, Any]]:
    """Trains the linear model of a run, after the models of its folds if it learns all sentences."""
    judge = train_folds(plan) if plan.data.apart else None
    return linear.fit_linear(replace(plan, judge=judge), folder, progress)

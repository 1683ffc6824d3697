"""Learning curves: the scores of models that are trained on growing parts of the labeled data."""

import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from kcrf.metrics.learning_curves import LearningCurve
from kcrf.progress_bars import bar, quiet
from kcrf.runs import Settings
from kcrf.tasks import task_of
from kcrf.training.train import train_tagger

_PARTS, _FEWEST = 4, 10  # sizes, each half of the next one; sentences of the smallest part
_TESTS = 500  # models of a smaller part are scored on up to so many sentences, if a draw holds out fewer


def learning_curve(settings: Settings, items: Sequence[Any], draws: int = 3) -> LearningCurve:
    """Trains models on an eighth, a quarter, half and all of two thirds of the labeled sentences, and scores them on
    the others.

    Each draw takes another third of the sentences for scoring. Linear models take seconds:

    >>> curve = learning_curve(Settings(task="ner", encoder="linear", augment=0), sentences)       # doctest: +SKIP
    >>> curve.law.score(2 * curve.count), curve.law.size(0.9)                                     # doctest: +SKIP

    Args:
        settings, items: As for `train_tagger`: `Settings`, and labeled data.
        draws: The number of draws, at least 2. Each holds out `1 / draws` of the sentences. Defaults to 3.
    """
    count, part = len(items), -(-len(items) // draws)
    sizes = [size for size in ((count - part) >> shift for shift in reversed(range(_PARTS))) if size >= _FEWEST]
    if len(sizes) < 2:
        raise ValueError(f"a curve needs at least {2 * _FEWEST * draws // (draws - 1)} sentences. Received: {count}")
    order, scores, metric = np.random.default_rng(settings.seed).permutation(count), np.zeros((draws, len(sizes))), "f"
    with bar() as shown:
        task = shown.add_task("models", total=scores.size)
        for (draw, column), _ in np.ndenumerate(scores):
            rolled, size = np.roll(order, -draw * part), sizes[column]
            chosen = rolled[:size], rolled[max(size, count - max(part, _TESTS)) :]
            metric, scores[draw, column] = score_of(settings, *([items[i] for i in sorted(rows)] for rows in chosen))
            shown.advance(task)
    learned = scores.any(axis=0)  # no draw learned anything of smaller parts
    if learned.sum() < 2:
        raise ValueError(f"a learning curve needs models that find something. Received: scores of {scores.tolist()}")
    sizes, scores = np.compress(learned, sizes).tolist(), scores[:, learned]
    return LearningCurve(metric, count, sizes, scores)


def score_of(settings: Settings, train: list[Any], test: list[Any]) -> tuple[str, float]:
    """The metric of a model of some sentences, and its score; 0 without any entity to learn."""
    if settings.task == "ner" and not any(item.spans for item in task_of("ner").check("train", train)):
        return "f", 0.0
    with tempfile.TemporaryDirectory() as folder, quiet(True):
        tagger, scores = train_tagger(settings, train, None, test, f"{folder}/run")
    return tagger.metric, float(scores["test"][tagger.metric])

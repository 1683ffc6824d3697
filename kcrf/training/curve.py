"""Learning curves: the scores of models that are trained on growing parts of the labeled data."""

import tempfile
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from kcrf.metrics.learning_curves import LearningCurve
from kcrf.progress_bars import bar, quiet
from kcrf.runs import Settings
from kcrf.tasks import task_of
from kcrf.training.train import train_tagger

_FEWEST = 10  # sentences of the smallest part
_TESTS = 500  # models of a smaller part are scored on up to so many sentences, if a draw holds out fewer


def learning_curve(settings: Settings, items: Sequence[Any]) -> LearningCurve:
    """Trains models on an eighth, a quarter, half and all of two thirds of the labeled sentences, and scores them on
    the others, once for each third. `settings` and `items` are as for `train_tagger`. Linear models take seconds:

    >>> curve = learning_curve(Settings(task="ner", encoder="linear", augment=0), sentences)       # doctest: +SKIP
    >>> curve.score(2 * curve.count), curve.size(0.9)  # doctest: +SKIP
    """
    count, third = len(items), -(-len(items) // 3)
    sizes = [size for part in (8, 4, 2, 1) if (size := (count - third) // part) >= _FEWEST]
    if len(sizes) < 2:
        raise ValueError(f"a curve needs at least {3 * _FEWEST} sentences. Received: {count}")
    order, scores, metric = np.random.default_rng(settings.seed).permutation(count), np.zeros((3, len(sizes))), "f"
    with bar() as shown:
        for draw, (column, size) in shown.track(list(product(range(3), enumerate(sizes))), description="models"):
            rolled = np.roll(order, -draw * third)
            chosen = rolled[:size], rolled[max(size, count - max(third, _TESTS)) :]
            metric, scores[draw, column] = score_of(settings, *([items[i] for i in sorted(rows)] for rows in chosen))
    learned = scores.any(axis=0)  # no draw learned anything of smaller parts
    if learned.sum() < 2:
        raise ValueError(f"a learning curve needs models that find something. Received: scores of {scores.tolist()}")
    return LearningCurve(metric, count, np.compress(learned, sizes).tolist(), scores[:, learned])


def score_of(settings: Settings, train: list[Any], test: list[Any]) -> tuple[str, float]:
    """The metric of a model of some sentences, and its score; 0 without any entity to learn."""
    if settings.task == "ner" and not any(item.spans for item in task_of("ner").check("train", train)):
        return "f", 0.0
    with tempfile.TemporaryDirectory() as folder, quiet(True):
        tagger, scores = train_tagger(settings, train, None, test, f"{folder}/run")
    return tagger.metric, float(scores["test"][tagger.metric])

"""Learning curves: the scores of models that are trained on growing parts of the labeled data."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kcrf.metrics.learning_curves import PowerLaw
from kcrf.progress_bars import bar, quiet
from kcrf.runs import Settings
from kcrf.tasks import task_of
from kcrf.training.train import train_tagger

_PARTS, _FEWEST = 4, 20  # sizes, each half of the next one; sentences of the smallest part
_TEST = 0.2  # fraction of the sentences that scores the models


@dataclass(frozen=True)
class LearningCurve:
    """Scores by the number of sentences, and their `kcrf.metrics.learning_curves.PowerLaw`."""

    metric: str  # a key of the scores of the task
    count: int  # of all labeled sentences
    sizes: list[int]
    scores: np.ndarray  # (draws, sizes)
    law: PowerLaw


def learning_curve(settings: Settings, items: Sequence[Any], draws: int = 3) -> LearningCurve:
    """Trains models on an eighth, a quarter, half and all of the labeled sentences but a fifth, which scores them.

    Each draw takes other sentences at random for the fifth and for the parts. Linear models take seconds:

    >>> curve = learning_curve(Settings(task="ner", encoder="linear", augment=0), sentences)       # doctest: +SKIP
    >>> curve.law.score(2 * curve.count), curve.law.size(0.9)                                     # doctest: +SKIP

    Args:
        settings, items: As for `train_tagger`: `Settings`, and labeled data.
        draws: How often parts are drawn. Defaults to 3.
    """
    most = len(items) - round(_TEST * len(items))
    sizes = [size for size in (most >> shift for shift in reversed(range(_PARTS))) if size >= _FEWEST]
    if len(sizes) < 2:
        raise ValueError(
            f"a learning curve needs at least {round(2 * _FEWEST / (1 - _TEST))} sentences. Received: {len(items)}"
        )
    rows, metric = [], "f"
    with bar() as shown:
        task = shown.add_task("models", total=draws * len(sizes))
        for draw in range(draws):
            order, row = np.random.default_rng([settings.seed, draw]).permutation(len(items)).tolist(), []
            for size in sizes:
                train, test = ([items[i] for i in sorted(part)] for part in (order[:size], order[most:]))
                metric, score = score_of(settings, train, test)
                row.append(score)
                shown.advance(task)
            rows.append(row)
    scores = np.array(rows)
    learned = [i for i in range(len(sizes)) if scores[:, i].any()]  # no draw learned anything of smaller parts
    if len(learned) < 2:
        raise ValueError(f"a learning curve needs models that find something. Received: scores of {scores.tolist()}")
    sizes, scores = [sizes[i] for i in learned], scores[:, learned]
    return LearningCurve(metric, len(items), sizes, scores, PowerLaw(sizes, scores))


def score_of(settings: Settings, train: list[Any], test: list[Any]) -> tuple[str, float]:
    """The metric of a model of some sentences, and its score; 0 without any entity to learn."""
    if settings.task == "ner" and not any(item.spans for item in task_of("ner").check("train", train)):
        return "f", 0.0
    with tempfile.TemporaryDirectory() as folder, quiet(True):
        tagger, scores = train_tagger(settings, train, None, test, f"{folder}/run")
    return tagger.metric, float(scores["test"][tagger.metric])

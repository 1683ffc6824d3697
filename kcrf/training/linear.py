"""Fits the linear model of a planned run without Keras, with the same run folder, log, early stopping and resuming."""

import time
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from kcrf.linear import AdaGradTrainer, LBFGSTrainer, LinearModel, SoftTarget, linear_batches
from kcrf.runs.names import LINEAR
from kcrf.runs.resolve import ADAGRAD_L1, ITERATIONS
from kcrf.taggers.linear_networks import LinearTaggingNetwork
from kcrf.taggers.trained_tagger import TrainedTagger
from kcrf.training.distillation import distillation_windows
from kcrf.training.history import TrainingHistory
from kcrf.training.plan import RunPlan
from kcrf.training.trainers import trainer_of

__all__ = ["fit_linear"]


def fit_linear(plan: RunPlan, folder: Any, progress: Any = None) -> tuple[TrainedTagger, dict[str, Any]]:
    """Trains the linear model of a planned run. Arguments and results are those of `kcrf.training.fit.fit`."""
    config, trainer, parts = plan.config, trainer_of(plan.config.task), plan.data.parts
    score = f"valid_{config.training.metric or 'f'}"
    history = TrainingHistory(config.training.epochs, config.training.patience, score)
    batches = _batches(config, distillation_windows(plan, folder))
    with _shown(progress, config.training.epochs, config.facts.steps):
        _fit(plan, folder, history, batches, progress)
    model = LinearModel.from_arrays(folder.read_arrays(LINEAR), config.data.tag_scheme(), config.model.constraints)
    tagger = _tagger(plan, model)
    temperature = trainer.calibrate(tagger, parts["valid"])
    folder.save_config(replace(plan.run, config=replace(config, temperature=temperature)))
    sources = (plan.run.data or {}).get("sources") or {}
    scores = trainer.score(folder, tagger, parts, sources)
    folder.save_scores(scores)
    return tagger, scores


def _batches(config, windows):
    weight = config.teacher.teacher_weight if config.teacher.teacher is not None else None
    pairs = [(inputs["ngrams"], _target(target, weight)) for inputs, target in windows]
    return linear_batches(pairs, config.training.batch_size)


def _target(target, weight):
    if weight is None:
        return target
    return SoftTarget(np.array(target.tags), target.expected_tags, target.expected_steps, weight)


def _fit(plan, folder, history, batches, progress):
    """Trains for all epochs, and writes the best model into the folder."""
    config, windows = plan.config, len(plan.windows)
    model = LinearModel.new(config.data.tag_scheme(), plan.reader.ngrams.buckets, config.model.constraints)
    trainer = _solver(config.optimizer, model)
    _resume(folder, history, trainer)
    start = time.perf_counter() - history.seconds()
    while not history.is_done():
        epoch = len(history.rows)
        if progress:
            progress.on_epoch_begin(epoch)
        order = np.random.default_rng([config.training.seed, epoch]).permutation(len(batches))
        loss = 0.0
        for number in order.tolist():
            loss += float(trainer.train_batch(batches[number], progress and progress.on_train_batch_end))
        rounded = LinearModel.from_arrays(model.arrays(), model.scheme, model.constraints)  # as in the file
        tagger = _tagger(plan, rounded)
        score = tagger.scores(plan.data.parts["valid"])[tagger.metric] or 0.0
        record = {"epoch": epoch + 1, "loss": loss / windows, f"valid_{tagger.metric}": score}
        record["seconds"] = round(time.perf_counter() - start, 1)
        is_best = history.add(record, model.transitions.round(6).tolist())
        _save(folder, history, trainer, rounded if is_best else None)
        if progress:
            progress.report(record)


def _solver(settings, model):
    """What trains a model by the settings of the optimizer."""
    if settings.solver == "lbfgs":
        return LBFGSTrainer(model, settings.l1, settings.l2, ITERATIONS)
    return AdaGradTrainer(model, settings.learning_rate, ADAGRAD_L1 if settings.l1 is None else settings.l1)


def _tagger(plan, model):
    model_config, metric = plan.config.model, plan.config.training.metric
    return TrainedTagger(LinearTaggingNetwork(model), plan.reader, model_config.min_confidence, metric=metric)


def _resume(folder, history, trainer):
    """Restores the state in the folder, if there is one."""
    if folder.has_state():
        rows, arrays = folder.read_state()
        history.set_state(rows)
        if arrays:
            trainer.load_state(dict(zip(trainer.state, arrays, strict=True)))


def _save(folder, history, trainer, best):
    """Writes the log, the transitions, the state and, if it is the best, the model."""
    if best is not None:
        folder.save_arrays(LINEAR, best.arrays())
    folder.save_log(history.rows)
    folder.save_transitions(trainer.model.scheme, history.transitions)
    folder.save_state(history.get_state(), [] if history.is_done() else trainer.state.values())


@contextmanager
def _shown(progress, epochs, steps):
    """A context that begins and ends the display of progress, if there is one."""
    if progress:
        progress.set_params({"epochs": epochs, "steps": steps})
        progress.on_train_begin()
    try:
        yield
    finally:
        if progress:
            progress.on_train_end()

"""Fits the linear model of a planned run without Keras, with the same run folder, log, early stopping and resuming."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from kcrf.linear import AdaGradTrainer, LBFGSTrainer, LinearModel, PooledTrainer, SoftTarget, linear_batches
from kcrf.networks.linear_networks import LinearTaggingNetwork, arrays_of_models, read_models
from kcrf.progress_bars import bar
from kcrf.readers import TagsOfStandard
from kcrf.readers.standards import reader_of_standard
from kcrf.runs import RunConfig, RunWriter
from kcrf.runs.formats import log_text, transitions_text
from kcrf.runs.names import LINEAR, LOG, TRANSITIONS
from kcrf.runs.resolve import BATCH_SIZES, ITERATIONS
from kcrf.taggers.load import TAGGERS
from kcrf.taggers.standards import StandardsTagger
from kcrf.training.history import Row, TrainingHistory, check_loss, validation_scores
from kcrf.training.plan import RunPlan
from kcrf.training.state import load_history
from kcrf.training.trainers import finish_run

Trainers = dict[str | None, Any]  # by segmentation standard, or under None


def fit_linear(plan: RunPlan, folder: Any, progress: Any = None) -> tuple[Any, dict[str, Any]]:
    """Trains the linear model of a planned run. Takes and returns the same as `kcrf.training.fit.fit_network`."""
    config = plan.config
    history = _history(config)
    batches = _batches(config, plan.targets(folder))
    with _shown(progress, config.training.epochs, config.facts.steps):
        _run_epochs(plan, folder, history, batches, progress)
    tagger = linear_tagger(plan, read_models(folder.read_arrays(LINEAR), config))
    return tagger, finish_run(plan, folder, tagger)


def train_linear_models(plan: RunPlan, windows: Any) -> dict[str | None, LinearModel]:
    """Trains the linear models of a planned run in memory: the best ones, or the last ones if the validation set is
    learned, too; one for each segmentation standard."""
    history, batches, trainers, best = _history(plan.config), _batches(plan.config, windows), _trainers(plan), {}
    with bar() as shown:
        steps = (plan.config.training.epochs or 1) * plan.config.facts.steps
        task = shown.add_task("training a linear model", total=steps)
        while not history.is_done():
            record, models = _epoch(plan, trainers, batches, len(history.rows), lambda *_: shown.advance(task))
            if history.add(record) or plan.data.apart:  # sentences that are learned judge no epoch
                best = models
        shown.update(task, completed=steps)  # which may be fewer
    return best


def _history(config: RunConfig) -> TrainingHistory:
    training = config.training
    return TrainingHistory(training.epochs or 0, training.patience, f"valid_{training.metric or 'f'}")


def _batches(config: RunConfig, windows: Any) -> list[Any]:
    """A list of `(standard, LinearBatch)`; the standard is None where there is one."""
    pairs = {}
    weight, _ = config.soft_targets or (None, None)
    for inputs, target in windows:
        standard = None
        if isinstance(target, TagsOfStandard):
            standard, target = target.standard, target.tags
        elif weight is not None:
            target = SoftTarget(np.array(target.tags), target.expected_tags, target.expected_steps, weight)
        pairs.setdefault(standard, []).append((inputs["ngrams"], target))
    size = config.training.batch_size or BATCH_SIZES[0]
    return [(standard, batch) for standard, own in pairs.items() for batch in linear_batches(own, size)]


def _run_epochs(plan: RunPlan, folder: RunWriter, history: TrainingHistory, batches: list[Any], progress: Any) -> None:
    """Trains for all epochs, and writes the best models into the folder, one for each segmentation standard."""
    trainers = _trainers(plan)
    _resume(folder, history, trainers)
    start = time.perf_counter() - history.seconds()
    while not history.is_done():
        if progress:
            progress.on_epoch_begin(len(history.rows))
        on_batch = progress and progress.on_train_batch_end
        record, models = _epoch(plan, trainers, batches, len(history.rows), on_batch)
        record["seconds"] = round(time.perf_counter() - start, 1)
        transitions = {standard: trainer.model.transitions for standard, trainer in trainers.items()}
        is_best = history.add(record, transitions)
        _save(folder, history, trainers, models if is_best else None)
        if progress:
            progress.report(record)


def _epoch(plan: RunPlan, trainers: Trainers, batches: list[Any], number: int, on_batch: Any = None) -> tuple[Row, Any]:
    """Trains for an epoch. Returns its row and copies of the models, with the scores that the run folder will have."""
    config, loss = plan.config, 0.0
    for batch_number in np.random.default_rng([config.training.seed, number]).permutation(len(batches)).tolist():
        standard, batch = batches[batch_number]
        with np.errstate(all="ignore"):  # a loss that is not finite is an error below
            loss += float(trainers[standard].train_batch(batch, on_batch))
    check_loss(loss, number + 1, "use a lower learning rate")
    arrays = arrays_of_models({standard: trainer.model for standard, trainer in trainers.items()})
    models = read_models(arrays, config)
    scores = validation_scores(plan.judge or linear_tagger(plan, models), plan.data.parts["valid"])
    return {"epoch": number + 1, "loss": loss / len(plan.windows), **scores}, models


def _solver(config: RunConfig, model: LinearModel) -> Any:
    """The trainer of a linear model, by the settings of the optimizer."""
    settings: Any = config.optimizer
    keep = config.continues
    if settings.solver == "lbfgs":
        return LBFGSTrainer(model, settings.l1, settings.l2, ITERATIONS, keep)
    return AdaGradTrainer(model, settings.learning_rate, settings.l1, keep, config.task.adagrad["damping"])


def _trainers(plan: RunPlan) -> Trainers:
    """The trainer of each segmentation standard, or of None where there is one standard."""
    standards = plan.config.data.standards
    ngrams = reader_of_standard(plan.reader, standards[0] if standards else None).ngrams
    return {standard: _trainer(plan, ngrams) for standard in standards or (None,)}


def _trainer(plan: RunPlan, ngrams: Any) -> Any:
    """The trainer of a new linear model, or of one that continues the model that the run extends. A new model with a
    lexicon is averaged with one without, which finds more of the words that are not in it."""
    config, columns = plan.config, ngrams.without_lexicon()
    weight = config.task.without_lexicon
    if not weight or config.continues or len(columns) == ngrams.width:
        return _solver(config, _initial_model(plan, ngrams.buckets))
    one, other = (_solver(config, _initial_model(plan, ngrams.buckets)) for _ in range(2))
    return PooledTrainer(one, other, columns, weight)


def _initial_model(plan: RunPlan, buckets: int) -> LinearModel:
    model = LinearModel.new(plan.config.data.tag_scheme(), buckets, plan.config.model.constraints)
    for stage in plan.stages:
        stage.initial_linear_model(model)
    return model


def linear_tagger(plan: RunPlan, models: Mapping[str | None, LinearModel]) -> Any:
    """The tagger of the linear models of a planned run."""
    make = TAGGERS[plan.config.task.name].of
    taggers = {
        standard: make(LinearTaggingNetwork(model), reader_of_standard(plan.reader, standard), plan.config)
        for standard, model in models.items()
    }
    return taggers[None] if None in taggers else StandardsTagger(taggers, models)


def _resume(folder: RunWriter, history: TrainingHistory, trainers: Trainers) -> None:
    """Restores the state in the folder, if there is one."""
    arrays = load_history(folder, history)
    expected = sum(len(trainer.state) for trainer in trainers.values())
    if arrays and len(arrays) != expected:
        raise ValueError(
            f"{folder.path}: needs a run that this version of kcrf began; --overwrite trains it anew. Received: a "
            f"state of {len(arrays)} arrays instead of {expected}"
        )
    arrays_in_order = iter(arrays)
    for trainer in trainers.values() if arrays else ():
        trainer.load_state({name: next(arrays_in_order) for name in trainer.state})


def _save(folder: RunWriter, history: TrainingHistory, trainers: Trainers, best: Any) -> None:
    """Writes the log, the transitions, the state and, if this epoch is the best, its models."""
    if best is not None:
        folder.save_arrays(LINEAR, arrays_of_models(best))
    folder.save_text(LOG, log_text(history.rows))
    scheme = next(iter(trainers.values())).model.scheme
    folder.save_text(TRANSITIONS, transitions_text(scheme, history.transitions))
    states = (array for trainer in trainers.values() for array in trainer.state.values())
    folder.save_state(history.get_state(), [] if history.is_done() else states)


@contextmanager
def _shown(progress: Any, epochs: int | None, steps: int) -> Iterator[None]:
    """A context that begins and ends the display of progress, if there is one."""
    if progress:
        progress.set_params({"epochs": epochs, "steps": steps, "unit": "iteration"})
        progress.on_train_begin()
    try:
        yield
    finally:
        if progress:
            progress.on_train_end()

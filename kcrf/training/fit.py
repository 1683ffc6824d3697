"""Fits the model of a planned run, and scores it."""

import re
from dataclasses import replace
from typing import Any

from kcrf.backend import keras, path_of, set_random_seed
from kcrf.networks.tagging import HEAD, crf_of
from kcrf.optimizers import AdamWeightDecay, layerwise_decay
from kcrf.progress_bars import print_note, quiet
from kcrf.runs import OptimizerConfig, RunConfig, RunWriter
from kcrf.runs.names import VALIDATED, WEIGHTS
from kcrf.runs.records import last_advice
from kcrf.taggers.encoder_of_run import open_bert
from kcrf.training.batches import Batches
from kcrf.training.callbacks import EpochBatches, Epochs, Interruption
from kcrf.training.data import RunData
from kcrf.training.folds import FoldsTagger
from kcrf.training.history import Row, TrainingHistory, check_loss
from kcrf.training.linear_part import linear_part
from kcrf.training.plan import RunPlan, plan_run
from kcrf.training.progress import fit_with_progress
from kcrf.training.rates import learning_rate, precision
from kcrf.training.stages import STAGES
from kcrf.training.state import load_history
from kcrf.training.trainers import finish_run, trainer_of


def fit_network(plan: RunPlan, folder: RunWriter, progress: Any = None) -> tuple[Any, dict[str, Any]]:
    """Trains the model of a planned run, from the state in its folder or from the start."""
    if plan.data.apart:
        return _fit_twice(plan, plan.data.apart, folder, progress)
    tagger, _ = _validated(plan, folder, progress)
    folder.load_weights(tagger.model)
    return tagger, finish_run(plan, folder, tagger)


def _fit_twice(plan: RunPlan, apart: RunData, folder: RunWriter, progress: Any) -> tuple[Any, dict[str, Any]]:
    """Trains a model without the held-out sentences, which judges them. Then trains a second one on all sentences, for
    as many epochs as were best."""
    with quiet(True):  # the plan of all sentences has printed its notes
        first = plan_run(plan.run.user, apart, table=STAGES)
    judge, best = _validated(first, folder, progress)
    if not folder.file(VALIDATED).is_file():
        folder.file(WEIGHTS).replace(folder.file(VALIDATED))
    folder.load_weights(judge.model, VALIDATED)
    tagger = _of_all_sentences(plan, best, progress)
    tagger.advice = judge.advice
    folder.save_weights(tagger.model)
    held_out = FoldsTagger([judge] * len(apart.parts["valid"]), trainer=trainer_of(plan.config.task))
    return tagger, finish_run(replace(plan, judge=held_out), folder, tagger)


def _of_all_sentences(plan: RunPlan, best: Row, progress: Any) -> Any:
    """The tagger of all sentences, trained in memory for the epochs of the best row, and averaged with its weight."""
    config, windows, epochs = plan.config, plan.windows, best["epoch"]
    print_note(f"training again, on all {len(plan.data.parts['train']):,} sentences, for {epochs} epochs")
    batches = trainer_of(config.task).batches(config.training, windows)
    set_random_seed(config.training.seed)
    model, tagger = _compiled(plan, len(batches))
    with Interruption() as interruption:
        callbacks = [EpochBatches(batches), *([progress] if progress else []), interruption]
        fitted = fit_with_progress(model, batches, epochs, 0, callbacks, progress)
    check_loss(fitted.history["loss"][-1], epochs)
    weight: Any = config.training.linear_weight
    linear_part(plan, windows).average(model, best.get("linear_weight", weight))
    return tagger


def _validated(plan: RunPlan, folder: RunWriter, progress: Any) -> tuple[Any, Row]:
    """Trains with validation after each epoch. Returns the tagger, and the row of the best epoch, whose weights are in
    the folder."""
    config, reader = plan.config, plan.reader
    trainer, windows = trainer_of(config.task), plan.targets(folder)
    batches = trainer.batches(config.training, windows)
    set_random_seed(config.training.seed)  # the teacher may have drawn random numbers
    with Interruption() as interruption:
        tagger, history = _train(plan, folder, windows, batches, progress, interruption)
    advice = tagger.crf and last_advice(history.rows, tagger.scheme.allowed_transitions, history.transitions)
    if config.training.precision != "float32":  # scored in the precision in which it will be loaded
        tagger = trainer.wrap(config, trainer.build(config, reader), reader)
    tagger.advice = advice
    return tagger, history.best()


def _train(
    plan: RunPlan, folder: RunWriter, windows: Any, batches: Batches, progress: Any, interruption: Interruption
) -> tuple[Any, TrainingHistory]:
    """Returns the trained tagger and its history. The best weights are in the folder."""
    config, valid = plan.config, plan.data.parts["valid"]
    trainer = trainer_of(config.task)
    model, tagger = _compiled(plan, len(batches), not folder.has_state())
    epochs: Any = config.training.epochs
    history = TrainingHistory(epochs, config.training.patience, f"valid_{tagger.metric}")
    state = load_history(folder, history)
    if not history.is_done():
        report = progress.report if progress else None
        monitors, averages = trainer.monitors(tagger, valid), config.model.bert is None
        part, epoch_begin = linear_part(plan, windows), EpochBatches(batches)
        epoch_end = Epochs(tagger, valid, history, folder, epoch_begin, monitors, report, averages, part, state)
        callbacks = [epoch_end, epoch_begin, *([progress] if progress else []), interruption]
        fit_with_progress(model, batches, epochs, len(history.rows), callbacks, progress)
    return tagger, history


def _compiled(plan: RunPlan, steps: int, is_new: bool = True) -> tuple[Any, Any]:
    """A model that is compiled for epochs of so many steps, with initial weights if it is new, and its tagger."""
    config, trainer = plan.config, trainer_of(plan.config.task)
    bert = None if config.continues else config.model.bert
    with open_bert(bert) as checkpoint, precision(config.training.precision or "float32"):
        model = trainer.build(config, plan.reader, checkpoint)
    for stage in plan.stages if is_new else ():
        stage.initial_weights(model)
    if config.data.units == "words" and config.training.linear_weight:
        # the linear model scores n-grams better: a network of English words that trains their scores, too, loses F1
        model.get_layer("NGrams").trainable = False
    compile_model(model, config, trainer.loss(config, model), steps * (config.training.epochs or 0))
    return model, trainer.wrap(config, model, plan.reader)


def compile_model(model: keras.Model, config: RunConfig, loss: Any, steps: int) -> None:
    """Compiles a model for a number of steps: from scratch with Adam and averaged weights, with a BERT with AdamW."""
    optimizer = config.optimizer
    rate = learning_rate(optimizer.learning_rate, optimizer.schedule, optimizer.warmup, steps)
    if config.model.bert is not None:
        for variable in model.trainable_variables if optimizer.layerwise_decay == 0 else ():
            variable.trainable = re.match(f"{HEAD}|CRF", path_of(variable)) is not None
        model.compile(_adam_w(model, optimizer, rate), loss=loss)
        return
    momentum = min(0.998, 1 - 10 / steps) if steps > 20 else 0.5  # averages over 500 steps, or a tenth of a short run
    adam = keras.optimizers.Adam(rate, global_clipnorm=5.0, use_ema=True, ema_momentum=momentum)
    model.compile(adam, loss=loss)


def _adam_w(model: keras.Model, optimizer: OptimizerConfig, rate: Any) -> Any:
    by_depth = layerwise_decay(model, optimizer.layerwise_decay) if 0 < optimizer.layerwise_decay < 1 else {}
    return AdamWeightDecay(
        rate,
        bias_correction=optimizer.bias_correction,
        lr_multipliers={**by_depth, HEAD: optimizer.head_lr_multiplier},
        weight_decay_rate=optimizer.weight_decay,
        exclude_from_weight_decay=("Norm", "bias", *(["^CRF"] if crf_of(model) else [])),
        prior_weight_decay_rate=optimizer.prior_decay,
        prior_variables=model if optimizer.prior_decay else None,
        global_clipnorm=1.0,
    )

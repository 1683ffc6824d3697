"""Fits the model of a planned run, and scores it."""

from typing import Any

from kcrf.backend import keras, set_random_seed
from kcrf.networks.tagging import HEAD, crf_of
from kcrf.optimizers import AdamWeightDecay, layerwise_decay
from kcrf.runs import OptimizerConfig, RunConfig, RunWriter
from kcrf.runs.records import last_advice
from kcrf.taggers.encoder_of_run import open_bert
from kcrf.training.batches import Batches
from kcrf.training.callbacks import EpochBatches, Epochs, Interruption
from kcrf.training.history import TrainingHistory
from kcrf.training.linear_part import linear_part
from kcrf.training.plan import RunPlan
from kcrf.training.progress import fit_with_progress
from kcrf.training.rates import learning_rate, precision
from kcrf.training.state import load_history
from kcrf.training.trainers import finish_run, trainer_of


def fit_network(plan: RunPlan, folder: RunWriter, progress: Any = None) -> tuple[Any, dict[str, Any]]:
    """Trains the model of a planned run, from the state in its folder or from the start."""
    config, reader = plan.config, plan.reader
    trainer, windows = trainer_of(config.task), plan.targets(folder)
    batches = trainer.batches(config.training, windows)
    set_random_seed(config.training.seed)  # the teacher may have drawn random numbers
    with Interruption() as interruption:
        tagger, advice = _train(plan, folder, windows, batches, progress, interruption)
    if config.training.precision != "float32":  # scored in the precision in which it will be loaded
        tagger = trainer.wrap(config, trainer.build(config, reader), reader)
    folder.load_weights(tagger.model)
    tagger.advice = advice
    return tagger, finish_run(plan, folder, tagger)


def _train(
    plan: RunPlan, folder: RunWriter, windows: Any, batches: Batches, progress: Any, interruption: Interruption
) -> tuple[Any, str | None]:
    """Returns the trained tagger and advice on its transitions. The best weights are in the folder."""
    config, valid = plan.config, plan.data.parts["valid"]
    trainer = trainer_of(config.task)
    bert = None if config.continues else config.model.bert
    with open_bert(bert) as checkpoint, precision(config.training.precision or "float32"):
        model = trainer.build(config, plan.reader, checkpoint)
    for stage in plan.stages if not folder.has_state() else ():
        stage.initial_weights(model)
    if config.data.units == "words" and config.training.linear_weight:
        # the linear model scores n-grams better: a network of English words that trains their scores, too, loses F1
        model.get_layer("NGrams").trainable = False
    compile_model(model, config, trainer.loss(config, model), len(batches) * (config.training.epochs or 0))
    tagger = trainer.wrap(config, model, plan.reader)
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
    advice = tagger.crf and last_advice(history.rows, tagger.scheme.allowed_transitions, history.transitions)
    return tagger, advice


def compile_model(model: keras.Model, config: RunConfig, loss: Any, steps: int) -> None:
    """Compiles a model for a number of steps: from scratch with Adam and averaged weights, with a BERT with AdamW."""
    optimizer = config.optimizer
    rate = learning_rate(optimizer.learning_rate, optimizer.schedule, optimizer.warmup, steps)
    if config.model.bert is not None:
        model.compile(_adam_w(model, optimizer, rate), loss=loss)
        return
    momentum = min(0.998, 1 - 10 / steps) if steps > 20 else 0.5  # averages over 500 steps, or a tenth of a short run
    adam = keras.optimizers.Adam(rate, global_clipnorm=5.0, use_ema=True, ema_momentum=momentum)
    model.compile(adam, loss=loss)


def _adam_w(model: keras.Model, optimizer: OptimizerConfig, rate: Any) -> Any:
    by_depth = layerwise_decay(model, optimizer.layerwise_decay) if optimizer.layerwise_decay < 1 else {}
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

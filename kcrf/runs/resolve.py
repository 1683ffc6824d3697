"""The configuration of a run: the settings of the user, and what the training data decide. Needs no Keras."""

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from kcrf.metrics.multipliers import suggest_lr_multiplier
from kcrf.runs.model_config import ModelConfig
from kcrf.runs.settings import PARTS, Settings
from kcrf.runs.training_config import AugmentationConfig, DataConfig, OptimizerConfig, TeacherConfig, TrainingConfig
from kcrf.tasks import DataFacts, Task, task_of

__all__ = ["RunConfig", "batch_size_for", "describe_run", "linear_solver", "resolve", "resolve_data"]

STEPS = 1000  # updates that data of any size get, unless that is fewer than 5 or more than 40 epochs
STEPS_OF_WORDS = 4000  # in place of `STEPS` where words are the tokens: sentences are short, and each has its own words
FEWEST_EPOCHS, MOST_EPOCHS = 5, 40
STEPS_OF_AN_EPOCH = 100  # at least this many, where the batch size can be chosen so
BATCH_SIZES = (16, 32, 64)
PATIENCE = 5  # epochs without a better one
PATIENCE_STEPS = 200  # but at least this many updates
MOST_PATIENCE = 10  # epochs: in runs of 40 epochs on 100 sentences, no epoch was the best after 10 that were not
LINEAR_EPOCHS, LINEAR_PATIENCE = 20, 4  # in steps
LBFGS_UP_TO = 25_000  # windows times tags
ITERATIONS = 100  # of an epoch of L-BFGS; it ends earlier if it converges
PENALTIES = {"characters": (0.03, 0.03), "words": (0.3, 0.01)}  # L1 and L2 of L-BFGS
NARROW, WIDE = 128, 256
WIDE_FROM = 2500  # windows


@dataclass(frozen=True)
class RunConfig:
    """The configuration of a run: nothing in it is left to decide.

    Attributes:
        data, model, optimizer, training, augmentation, teacher: The parts, see their classes.
        facts: What the data decided.
        temperature: All scores are divided by it before probabilities are computed. Fitted on the validation set after
            training; a dict by standard where there are several.
    """

    data: DataConfig
    model: ModelConfig
    optimizer: OptimizerConfig
    training: TrainingConfig
    augmentation: AugmentationConfig
    teacher: TeacherConfig
    facts: DataFacts
    temperature: Any = 1.0

    def of_standard(self, standard: str) -> "RunConfig":
        """The configuration of the model of one of the segmentation standards."""
        temperature = self.temperature[standard] if isinstance(self.temperature, dict) else self.temperature
        return replace(self, data=replace(self.data, standards=()), temperature=temperature)

    @property
    def task(self) -> Task:
        """The task."""
        return task_of(self.data.task)

    def flat(self) -> dict[str, Any]:
        """All values by name, as plain values."""
        parts = (self.data, self.model, self.optimizer, self.training, self.augmentation, self.teacher)
        values = {name: value for part in parts for name, value in asdict(part).items()}
        values |= {name: list(value) for name, value in values.items() if isinstance(value, tuple)}
        facts = {name: getattr(self.facts, name) for name in ("pairs", "mean", "deviation")}
        return {**values, **facts, "temperature": self.temperature}

    @classmethod
    def of_flat(cls, values: dict[str, Any]) -> "RunConfig":
        """The configuration with the values that `flat` returned; what is absent has its default."""
        parts = (
            part(**{setting.name: values[setting.name] for setting in fields(part) if setting.name in values})
            for part in PARTS
        )
        facts = {setting.name: values[setting.name] for setting in fields(DataFacts) if setting.name in values}
        made: Any = (*parts, DataFacts(**facts), values.get("temperature", 1.0))
        return cls(*made)


def resolve(user: Settings, facts: DataFacts) -> RunConfig:
    """Decides on all settings that the user left open.

    Small data train for more epochs, with smaller batches and a narrower encoder: data of every size get about as many
    updates, and training stops early where the validation score no longer improves. The user's settings are kept, and
    the others are chosen to go with them: a given batch size changes the number of epochs, and a given number of epochs
    is not cut short. See `experiments/defaults.py`.

    Args:
        user: `Settings`.
        facts: The `DataFacts` of the training data.

    Returns:
        A `RunConfig`.

    Raises:
        ValueError: `facts.windows` is not positive.

    >>> config = resolve(Settings(), DataFacts(windows=500))
    >>> config.training.epochs, config.model.width
    (31, 128)
    """
    if facts.windows < 1:
        raise ValueError(f"`windows` must be positive. Received: {facts.windows}")
    data, model, optimizer = resolve_data(user, facts), user.part(ModelConfig), user.part(OptimizerConfig)
    if model.encoder == "linear":
        optimizer = _optimizer_of_linear(user, facts.windows, data)
        training = _training_of_linear(user.part(TrainingConfig), facts, optimizer.solver)
    else:
        training = _training(user.part(TrainingConfig), facts, data.units)
    training = replace(training, metric=training.metric or facts.metric)
    multiplier = model.crf_lr_multiplier
    if isinstance(multiplier, str):  # "auto"
        rate, epochs = optimizer.learning_rate or 0.0, training.epochs or 0  # numbers by now
        multiplier = suggest_lr_multiplier(rate, epochs * facts.steps)
    width = model.width or (WIDE if facts.windows >= WIDE_FROM else NARROW)
    model = replace(model, crf_lr_multiplier=multiplier, width=width)
    return RunConfig(data, model, optimizer, training, user.part(AugmentationConfig), user.part(TeacherConfig), facts)


def resolve_data(user: Settings, facts: DataFacts) -> DataConfig:
    """The settings of the data with what the training set decides: what its windows are read with."""
    data = user.part(DataConfig)
    chosen = {name: getattr(data, name) or getattr(facts, name) for name in ("types", "labels", "units", "standards")}
    return replace(data, **chosen)


def _training(training, facts, units):
    """The settings of training with numbers of epochs and of windows in a batch, and with the patience."""
    batch_size = batch_size_for(training, facts.windows)
    epochs, patience = training.epochs, training.patience
    if training.steps is not None:
        epochs = math.ceil(training.steps / facts.steps)
    elif epochs is None:
        steps = math.ceil(facts.windows / batch_size)
        updates = STEPS_OF_WORDS if units == "words" else STEPS
        epochs = min(max(FEWEST_EPOCHS, round(updates / steps)), MOST_EPOCHS)
        patience = patience or min(max(PATIENCE, math.ceil(PATIENCE_STEPS / steps)), MOST_PATIENCE)
    return replace(training, epochs=epochs, patience=patience, batch_size=batch_size)


def linear_solver(user: Settings, windows: int, tags: int) -> str:
    """How a linear model with that many tags is trained: "lbfgs" or "adagrad"."""
    if user.solver is not None:
        return user.solver
    in_steps = any(value is not None for value in (user.learning_rate, user.batch_size, user.batch_tokens))
    return "adagrad" if user.l2 is None and (in_steps or windows * tags > LBFGS_UP_TO) else "lbfgs"


def _optimizer_of_linear(user, windows, data):
    """The settings of the optimizer with the solver and its penalties."""
    optimizer, solver = user.part(OptimizerConfig), linear_solver(user, windows, len(data.tag_scheme()))
    adagrad = task_of(data.task).adagrad
    defaults = {"learning_rate": adagrad["learning_rate"], "l1": adagrad["l1"], "l2": 0.0}
    if solver == "lbfgs":
        defaults.update(zip(("l1", "l2"), PENALTIES["words" if data.units == "words" else "characters"], strict=True))
    open_ones = {name: value for name, value in defaults.items() if getattr(user, name) is None}
    return replace(optimizer, solver=solver, **open_ones)


def _training_of_linear(training, facts, solver):
    """As `_training`. L-BFGS has one epoch, and needs no early stopping: its optimum is a regularized one.

    Epochs in steps take little time, and the first ones are the best of large data.
    """
    is_set, by_default = training.epochs is not None or training.steps is not None, LINEAR_EPOCHS
    patience, batch_size = training.patience or (None if is_set else LINEAR_PATIENCE), BATCH_SIZES[0]
    if solver == "lbfgs":
        by_default, patience, batch_size = 1, training.patience, facts.windows
    epochs = training.epochs or (math.ceil(training.steps / facts.steps) if training.steps else by_default)
    return replace(training, epochs=epochs, patience=patience, batch_size=training.batch_size or batch_size)


def batch_size_for(training: TrainingConfig, windows: int) -> int:
    """Windows in a batch: as given, else the largest that leaves an epoch enough steps, or the smallest there is."""
    enough = (size for size in BATCH_SIZES if windows >= size * STEPS_OF_AN_EPOCH)
    return training.batch_size or max(enough, default=BATCH_SIZES[0])


def describe_run(config: RunConfig, items: int, copies: int = 0) -> str:
    """One line about the data and the settings that matter most.

    Args:
        config: The `RunConfig`.
        items: How many sentences or texts the training set has.
        copies: How many augmented copies of them it has. Defaults to 0.

    >>> facts = DataFacts(types=("LOC", "ORG", "PER"), windows=3821, steps=120)
    >>> describe_run(resolve(Settings(task="ner"), facts), 3821)
    '3,821 sentences, 7 tags: up to 8 epochs of 120 steps, batch size 32, width 256, depth 3, crf with constraints'
    """
    training, model = config.training, config.model
    augmented = f" and {copies:,} augmented copies" if copies else ""
    learned, head = config.task.describe(config)
    if config.optimizer.solver == "lbfgs":
        parts = [f"up to {(training.epochs or 1) * config.facts.steps} iterations of L-BFGS"]
    else:
        parts = [
            f"{'up to ' if training.patience else ''}{training.epochs} epochs of {config.facts.steps:,} steps",
            f"{training.batch_tokens:,} positions a step"
            if training.batch_tokens
            else f"batch size {training.batch_size}",
        ]
    if model.encoder == "linear":
        parts += ["linear"]
    elif model.encoder != "none":
        parts += [f"width {model.width}", f"depth {model.depth}"]
    return f"{items:,} {config.task.items}{augmented}{learned}: {', '.join([*parts, head])}"

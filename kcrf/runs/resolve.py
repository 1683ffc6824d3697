"""The configuration of a run: the settings of the user, and what the training data decide. Needs no Keras."""

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from kcrf.rates import suggest_lr_multiplier
from kcrf.runs.model_config import ModelConfig
from kcrf.runs.settings import PARTS, Settings
from kcrf.runs.training_config import AugmentationConfig, DataConfig, OptimizerConfig, TeacherConfig, TrainingConfig
from kcrf.tasks import DataFacts, Task, task_of

STEPS = 1000  # updates, whatever the size of the data, within the limits of the number of epochs
STEPS_OF_WORDS = 4000  # instead of `STEPS` for word-level models: sentences are short, and each has its own words
FEWEST_EPOCHS, MOST_EPOCHS = 5, 40
STEPS_OF_EXTENDED, MOST_EPOCHS_OF_EXTENDED = 3000, 20  # the learning rate is about a third
STEPS_OF_BERT, MOST_EPOCHS_OF_BERT = 300, 20  # a few hundred samples need more than 5 epochs: c07 of `experiments`
STEPS_OF_AN_EPOCH = 100  # updates that the chosen batch size leaves at least, if a batch size does
BATCH_SIZES = (16, 32, 64)
PATIENCE = 5  # epochs without a better score
PATIENCE_STEPS = 200  # updates without a better score: at least as many
MOST_PATIENCE = 10  # epochs: in runs of 40 epochs on 100 sentences, no best epoch came after 10 epochs that were not
LINEAR_EPOCHS, LINEAR_PATIENCE = 20, 4  # of AdaGrad
LBFGS_UP_TO = 25_000  # windows times tags
ITERATIONS = 100  # at most, in an epoch of L-BFGS
PENALTIES = {"characters": (0.03, 0.03), "words": (0.3, 0.01)}  # L1 and L2 of L-BFGS
NARROW, WIDE = 128, 256
WIDE_FROM = 2500  # windows
COPIES, COPIES_UP_TO = 3, 1000  # augmented copies of each sentence, up to this number of sentences


@dataclass(frozen=True)
class RunConfig:
    """The complete configuration of a run.

    Attributes:
        data, model, optimizer, training, augmentation, teacher: The parts, see their classes.
        facts: The `DataFacts` of the training data.
        temperature: The number by which all scores are divided before probabilities are computed. It is fitted on the
            validation set after training. For several standards, a dict from their names to numbers.
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
        """All values by name, as JSON can write them."""
        parts = (self.data, self.model, self.optimizer, self.training, self.augmentation, self.teacher)
        values = {name: value for part in parts for name, value in asdict(part).items()}
        values |= {name: list(value) for name, value in values.items() if isinstance(value, tuple)}
        facts = {name: getattr(self.facts, name) for name in ("pairs", "mean", "deviation")}
        return {**values, **facts, "temperature": self.temperature}

    @classmethod
    def of_flat(cls, values: dict[str, Any]) -> "RunConfig":
        """The configuration with the values that `flat` returned, and the defaults of values that are missing."""
        parts = (
            part(**{setting.name: values[setting.name] for setting in fields(part) if setting.name in values})
            for part in PARTS
        )
        facts = {setting.name: values[setting.name] for setting in fields(DataFacts) if setting.name in values}
        made: Any = (*parts, DataFacts(**facts), values.get("temperature", 1.0))
        return cls(*made)


def resolve(user: Settings, facts: DataFacts) -> RunConfig:
    """Chooses all settings that the user has not set.

    The number of updates is about the same for all sizes of the data: small datasets train for more epochs, with
    smaller batches and a narrower encoder. Training stops early if the validation score no longer improves. The choices
    depend on the user's settings: a batch size changes the number of epochs, and if the user sets the number of epochs,
    training does not stop early. `experiments/defaults.py` measures these defaults.

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
        training = _training(user, facts, data.units)
    weight = _linear_weight(user, model, data.task)
    training = replace(training, metric=training.metric or facts.metric, linear_weight=weight)
    multiplier = model.crf_lr_multiplier
    if isinstance(multiplier, str):  # "auto"
        rate, epochs = optimizer.learning_rate or 0.0, training.epochs or 0  # numbers by now
        multiplier = suggest_lr_multiplier(rate, epochs * facts.steps)
    width = model.width or (WIDE if facts.windows >= WIDE_FROM else NARROW)
    model = replace(model, crf_lr_multiplier=multiplier, width=width)
    augmentation = augmentation_for(user, data.units, facts.items)
    return RunConfig(data, model, optimizer, training, augmentation, user.part(TeacherConfig), facts)


def augmentation_for(user: Settings, units: str | None, items: int) -> AugmentationConfig:
    """The augmented copies: those of the user's settings, or those by which few sentences of characters gain.

    `benchmarks/linear.py` measures them. Models of English words lose by them, and larger datasets do not gain.

    Args:
        user: `Settings`.
        units: "words" or "characters" for entities from scratch.
        items: How many sentences the training set has.
    """
    augmentation, how = user.part(AugmentationConfig), task_of(user.task).augment_by
    if augmentation.augment is not None:
        return augmentation
    spelled_out = user.epochs is not None or user.steps is not None
    is_new = user.bert is None and user.extend is None and not user.incomplete
    if how and is_new and not spelled_out and units == "characters" and 0 < items <= COPIES_UP_TO:
        return replace(augmentation, augment=COPIES, augment_by=how)
    return replace(augmentation, augment=0)


def resolve_data(user: Settings, facts: DataFacts) -> DataConfig:
    """The settings of the data. Types, labels, units and standards that the user has not set are those of the facts."""
    data = user.part(DataConfig)
    chosen = {name: getattr(data, name) or getattr(facts, name) for name in ("types", "labels", "units", "standards")}
    return replace(data, **chosen)


def _training(user, facts, units):
    """The settings of training, with the number of epochs, the batch size and the patience."""
    training = user.part(TrainingConfig)
    batch_size = batch_size_for(training, facts.windows)
    epochs, patience = training.epochs, training.patience
    if training.steps is not None:
        epochs = math.ceil(training.steps / facts.steps)
    elif epochs is None:
        steps = math.ceil(facts.windows / batch_size)
        updates, most = _updates(user, units)
        epochs = min(max(FEWEST_EPOCHS, round(updates / steps)), most)
        patience = patience or min(max(PATIENCE, math.ceil(PATIENCE_STEPS / steps)), MOST_PATIENCE)
    return replace(training, epochs=epochs, patience=patience, batch_size=batch_size)


def _updates(user, units):
    """About how many updates training should make, and the highest number of epochs."""
    if user.bert is not None:
        return STEPS_OF_BERT, MOST_EPOCHS_OF_BERT
    updates = STEPS_OF_WORDS if units == "words" else STEPS
    return (updates, MOST_EPOCHS) if user.extend is None else (max(updates, STEPS_OF_EXTENDED), MOST_EPOCHS_OF_EXTENDED)


def linear_solver(user: Settings, windows: int, tags: int) -> str:
    """The solver of a linear model, "lbfgs" or "adagrad", by the user's settings or by the size of the data."""
    if user.solver is not None:
        return user.solver
    in_steps = any(value is not None for value in (user.learning_rate, user.batch_size))
    return "adagrad" if user.l2 is None and (in_steps or windows * tags > LBFGS_UP_TO) else "lbfgs"


def _optimizer_of_linear(user, windows, data):
    """The settings of the optimizer of a linear model, with the solver, its learning rate and its penalties."""
    optimizer, solver = user.part(OptimizerConfig), linear_solver(user, windows, len(data.tag_scheme()))
    adagrad = task_of(data.task).adagrad
    defaults = {"learning_rate": adagrad["learning_rate"], "l1": adagrad["l1"], "l2": 0.0}
    if solver == "lbfgs":
        defaults.update(zip(("l1", "l2"), PENALTIES["words" if data.units == "words" else "characters"], strict=True))
    return replace(optimizer, solver=solver, **{n: value for n, value in defaults.items() if getattr(user, n) is None})


def _training_of_linear(training, facts, solver):
    """As `_training`, for a linear model. L-BFGS has one epoch, without early stopping: its optimum is regularized.

    With AdaGrad, the first epochs on large data are the best, so it stops early.
    """
    if solver == "lbfgs":
        epochs, patience, batch_size = 1, None, facts.windows
    else:
        epochs, patience, batch_size = LINEAR_EPOCHS, LINEAR_PATIENCE, BATCH_SIZES[0]
    if training.steps is not None:
        epochs = math.ceil(training.steps / facts.steps)
    if training.steps is not None or training.epochs is not None:
        patience = None
    return replace(
        training,
        epochs=training.epochs or epochs,
        patience=training.patience or patience,
        batch_size=training.batch_size or batch_size,
    )


def _linear_weight(user, model, task):
    """The weight of a linear model in the average with the network, or "auto"."""
    if not model.ngrams or model.head != "crf" or model.encoder == "linear":
        return 0.0
    if user.linear_weight is not None:
        return user.linear_weight
    if user.extend is not None:  # a linear model of the new sentences alone knows no old types
        return 0.0
    if user.teacher_temperature not in (None, 1):  # a linear model learns at temperature 1
        return 0.0
    return task_of(task).linear_weight


def batch_size_for(training: TrainingConfig, windows: int) -> int:
    """The batch size in windows: the user's, or the largest that leaves an epoch 100 updates, or the smallest."""
    enough = (size for size in BATCH_SIZES if windows >= size * STEPS_OF_AN_EPOCH)
    return training.batch_size or max(enough, default=BATCH_SIZES[0])


def describe_run(config: RunConfig, items: int, copies: int = 0) -> str:
    """One line about the data and the settings that matter most.

    Args:
        config: The `RunConfig`.
        items: How many sentences or texts the training set has.
        copies: How many augmented copies of them it has. Defaults to 0.

    >>> facts = DataFacts(types=("LOC", "ORG", "PER"), windows=3821, steps=120)
    >>> describe_run(resolve(Settings(task="ner", linear_weight=0.0), facts), 3821)
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
    if training.linear_weight == "auto":
        parts += ["averaged with a linear model where that is better"]
    elif training.linear_weight:
        parts += [f"averaged with a linear model of weight {training.linear_weight:g}"]
    return f"{items:,} {config.task.items}{augmented}{learned}: {', '.join([*parts, head])}"

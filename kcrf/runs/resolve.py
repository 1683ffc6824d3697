"""The configuration of a run: the settings of the user, and what the training data decide. Needs no Keras."""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from kcrf.rates import suggest_lr_multiplier
from kcrf.runs.model_config import ModelConfig
from kcrf.runs.settings import FIELDS, Settings
from kcrf.runs.stages import STAGES, AugmentationConfig, StageConfig
from kcrf.runs.training_config import DataConfig, OptimizerConfig, TrainingConfig
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
        data, model, optimizer, training: The parts, see their classes.
        stages: The settings of the stages that take part.
        facts: The `DataFacts` of the training data.
        temperature: The number by which all scores are divided before probabilities are computed. It is fitted on the
            validation set after training. For several standards, a dict from their names to numbers.
    """

    data: DataConfig
    model: ModelConfig
    optimizer: OptimizerConfig
    training: TrainingConfig
    stages: tuple[StageConfig, ...]
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

    @property
    def continues(self) -> bool:
        """Whether the run continues the model of another run."""
        return any(stage.continues for stage in self.stages)

    @property
    def soft_targets(self) -> tuple[float, float] | None:
        """The weight of soft targets in the loss, and their temperature; None without a model to learn from."""
        return next((stage.soft_targets for stage in self.stages if stage.soft_targets), None)

    def flat(self) -> dict[str, Any]:
        """All values by name, as JSON can write them. Stages that take no part have the default values."""
        values = {name: setting.default for name, setting in FIELDS.items()}
        for part in (self.data, self.model, self.optimizer, self.training, *self.stages):
            values |= asdict(part)  # type: ignore[call-overload]
        values |= {name: list(value) for name, value in values.items() if isinstance(value, tuple)}
        facts = {name: getattr(self.facts, name) for name in ("pairs", "mean", "deviation")}
        return {**values, **facts, "temperature": self.temperature}


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
    weight = _linear_weight(user, model)
    training = replace(training, metric=training.metric or facts.metric, linear_weight=weight)
    multiplier = model.crf_lr_multiplier
    if isinstance(multiplier, str):  # "auto"
        rate, epochs = optimizer.learning_rate or 0.0, training.epochs or 0  # numbers by now
        multiplier = suggest_lr_multiplier(rate, epochs * facts.steps)
    width = model.width or (WIDE if facts.windows >= WIDE_FROM else NARROW)
    model = replace(model, crf_lr_multiplier=multiplier, width=width)
    return RunConfig(data, model, optimizer, training, resolve_stages(user, facts), facts)


def resolve_stages(user: Settings, facts: DataFacts) -> tuple[StageConfig, ...]:
    """The stages that take part. Small datasets of characters get augmented copies if the user does not decide.

    `benchmarks/linear.py` measures these copies. Models of English words lose by them, and larger datasets do not gain.
    """
    stages = [user.part(stage) for stage in STAGES]
    augmentation, by = user.part(AugmentationConfig), task_of(user.task).augment_by
    is_new = user.bert is None and user.epochs is None and user.steps is None and not user.continues
    is_small = resolve_data(user, facts).units == "characters" and 0 < facts.items <= COPIES_UP_TO
    if augmentation.augment is None and by and is_new and is_small and not user.incomplete:
        stages[STAGES.index(AugmentationConfig)] = replace(augmentation, augment=COPIES, augment_by=by)
    return tuple(stage for stage in stages if stage.is_used)


def resolve_data(user: Settings, facts: DataFacts) -> DataConfig:
    """The settings of the data. Types, labels, units and standards that the user has not set are those of the facts."""
    data = user.part(DataConfig)
    chosen = {name: getattr(data, name) or getattr(facts, name) for name in ("types", "labels", "units", "standards")}
    return replace(data, **chosen)


def _training(user: Settings, facts: DataFacts, units: str | None) -> TrainingConfig:
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


def _updates(user: Settings, units: str | None) -> tuple[int, int]:
    """About how many updates training should make, and the highest number of epochs."""
    if user.bert is not None:
        return STEPS_OF_BERT, MOST_EPOCHS_OF_BERT
    updates = STEPS_OF_WORDS if units == "words" else STEPS
    return (max(updates, STEPS_OF_EXTENDED), MOST_EPOCHS_OF_EXTENDED) if user.continues else (updates, MOST_EPOCHS)


def linear_solver(user: Settings, windows: int, tags: int) -> str:
    """The solver of a linear model, "lbfgs" or "adagrad", by the user's settings or by the size of the data."""
    if user.solver is not None:
        return user.solver
    in_steps = any(value is not None for value in (user.learning_rate, user.batch_size))
    return "adagrad" if user.l2 is None and (in_steps or windows * tags > LBFGS_UP_TO) else "lbfgs"


def _optimizer_of_linear(user: Settings, windows: int, data: DataConfig) -> OptimizerConfig:
    """The settings of the optimizer of a linear model, with the solver, its learning rate and its penalties."""
    optimizer, solver = user.part(OptimizerConfig), linear_solver(user, windows, len(data.tag_scheme()))
    adagrad = task_of(data.task).adagrad
    defaults: dict[str, Any] = {"learning_rate": adagrad["learning_rate"], "l1": adagrad["l1"], "l2": 0.0}
    if solver == "lbfgs":
        defaults.update(zip(("l1", "l2"), PENALTIES["words" if data.units == "words" else "characters"], strict=True))
    return replace(optimizer, solver=solver, **{n: value for n, value in defaults.items() if getattr(user, n) is None})


def _training_of_linear(training: TrainingConfig, facts: DataFacts, solver: str | None) -> TrainingConfig:
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


def _linear_weight(user: Settings, model: ModelConfig) -> float | str:
    """The weight of a linear model in the average with the network, or "auto"."""
    if not model.ngrams or model.head != "crf" or model.encoder == "linear":
        return 0.0
    if user.linear_weight is not None:
        return user.linear_weight
    if user.continues or user.teacher_temperature not in (None, 1):
        return 0.0  # a linear model of the new sentences knows no old types, and learns at temperature 1
    return task_of(user.task).linear_weight


def batch_size_for(training: TrainingConfig, windows: int) -> int:
    """The batch size in windows: the user's, or the largest that leaves an epoch 100 updates, or the smallest."""
    enough = (size for size in BATCH_SIZES if windows >= size * STEPS_OF_AN_EPOCH)
    return training.batch_size or max(enough, default=BATCH_SIZES[0])


def describe_run(config: RunConfig, items: int, copies: int = 0) -> str:
    """One line about the data and the settings that matter most.

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

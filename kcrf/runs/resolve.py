"""The configuration of a run: the settings of the user, and what the training data decide. Needs no Keras."""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from kcrf.rates import suggest_lr_multiplier
from kcrf.runs.model_config import ModelConfig
from kcrf.runs.settings import FIELDS, Settings
from kcrf.runs.stages import STAGES, AugmentationConfig, IncompleteConfig, StageConfig
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
LBFGS_UP_TO = 25_000  # windows times tags; linear models get no copies beyond: AdaGrad loses more than copies gain
ITERATIONS = 100  # at most, in an epoch of L-BFGS
PENALTIES = {"characters": (0.03, 0.03), "words": (0.3, 0.01)}  # L1 and L2 of L-BFGS
NARROW, WIDE = 128, 256
WIDE_FROM = 2500  # windows
COPIES, COPIES_UP_TO = 3, 1000  # augmented copies of each sentence, up to this number of sentences

Stages = tuple[StageConfig, ...]


@dataclass(frozen=True)
class RunConfig:
    """The complete configuration of a run."""

    data: DataConfig
    model: ModelConfig
    optimizer: OptimizerConfig
    training: TrainingConfig
    stages: Stages  # that take part
    facts: DataFacts
    temperature: Any = 1.0  # divides the scores for probabilities; a dict if there are several standards

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
        facts = {name: getattr(self.facts, name) for name in ("pairs", "multilabel", "mean", "deviation")}
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
    data, model, optimizer, training, *stages = user.parts()
    chosen = {name: getattr(data, name) or getattr(facts, name) for name in ("types", "labels", "units", "standards")}
    data = replace(data, **chosen)
    used = _stages(stages, data, model, training, facts)
    if model.encoder == "linear":
        optimizer = _optimizer_of_linear(optimizer, training, data, facts.windows)
        training = _training_of_linear(training, facts, optimizer.solver)
    elif training.steps is not None:
        training = replace(training, epochs=math.ceil(training.steps / facts.steps))
    else:
        training = _training(training, facts, *_updates(model, data, used))
    weight = _linear_weight(model, training.linear_weight, data, used)
    multiplier = model.crf_lr_multiplier
    if isinstance(multiplier, str):  # "auto"
        multiplier = suggest_lr_multiplier(optimizer.learning_rate, training.epochs * facts.steps)
    width = model.width or (WIDE if facts.windows >= WIDE_FROM else NARROW)
    batch_size = training.batch_size or _batch_size(facts.windows)
    model = replace(model, crf_lr_multiplier=multiplier, width=width)
    metric = training.metric or facts.metric
    precision = training.precision or facts.precision
    training = replace(training, metric=metric, linear_weight=weight, batch_size=batch_size, precision=precision)
    return RunConfig(data, model, optimizer, training, used, facts)


def _stages(
    stages: list[Any], data: DataConfig, model: ModelConfig, training: TrainingConfig, facts: DataFacts
) -> Stages:
    """The stages that take part. Small datasets of characters get augmented copies if the user does not decide.
    `benchmarks/linear.py` measures these copies. Models of English words lose by them; larger datasets do not gain."""
    number, by = STAGES.index(AugmentationConfig), task_of(data.task).augment_by
    is_new = model.bert is None and training.epochs is None and training.steps is None
    is_whole = not any(stage.continues or isinstance(stage, IncompleteConfig) for stage in stages if stage.is_used)
    is_small = data.units == "characters" and 0 < facts.items <= COPIES_UP_TO
    if model.encoder == "linear":
        is_small &= facts.items * (1 + COPIES) * len(data.tag_scheme()) <= LBFGS_UP_TO
    if stages[number].augment is None and by and is_new and is_whole and is_small:
        stages[number] = replace(stages[number], augment=COPIES, augment_by=by)
    return tuple(stage for stage in stages if stage.is_used)


def _training(training: TrainingConfig, facts: DataFacts, updates: int, most: int) -> TrainingConfig:
    """The settings of training, with the epochs that make about so many updates, and with the patience."""
    if training.epochs is not None:
        return training
    steps = math.ceil(facts.windows / (training.batch_size or _batch_size(facts.windows)))
    epochs = min(max(FEWEST_EPOCHS, round(updates / steps)), most)
    patience = min(max(PATIENCE, math.ceil(PATIENCE_STEPS / steps)), MOST_PATIENCE)
    return replace(training, epochs=epochs, patience=training.patience or patience)


def _updates(model: ModelConfig, data: DataConfig, stages: Stages) -> tuple[int, int]:
    """About how many updates training should make, and the highest number of epochs."""
    if model.bert is not None:
        return STEPS_OF_BERT, MOST_EPOCHS_OF_BERT
    updates = STEPS_OF_WORDS if data.units == "words" else STEPS
    if any(stage.continues for stage in stages):
        return max(updates, STEPS_OF_EXTENDED), MOST_EPOCHS_OF_EXTENDED
    return updates, MOST_EPOCHS


def _optimizer_of_linear(
    optimizer: OptimizerConfig, training: TrainingConfig, data: DataConfig, windows: int
) -> OptimizerConfig:
    """The settings of the optimizer of a linear model, with the solver, its learning rate and its penalties."""
    adagrad, solver = task_of(data.task).adagrad, optimizer.solver
    if solver is None:
        in_steps = optimizer.learning_rate is not None or training.batch_size is not None
        is_large = windows * len(data.tag_scheme()) > LBFGS_UP_TO
        solver = "adagrad" if optimizer.l2 is None and (in_steps or is_large) else "lbfgs"
    defaults: dict[str, Any] = {"learning_rate": adagrad["learning_rate"], "l1": adagrad["l1"], "l2": 0.0}
    if solver == "lbfgs":
        defaults.update(zip(("l1", "l2"), PENALTIES["words" if data.units == "words" else "characters"], strict=True))
    chosen = {name: value for name, value in defaults.items() if getattr(optimizer, name) is None}
    return replace(optimizer, solver=solver, **chosen)


def _training_of_linear(training: TrainingConfig, facts: DataFacts, solver: str | None) -> TrainingConfig:
    """As `_training`, for a linear model. L-BFGS has one epoch, without early stopping: its optimum is regularized.
    With AdaGrad, the first epochs on large data are the best, so it stops early."""
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


def _linear_weight(model: ModelConfig, weight: Any, data: DataConfig, stages: Stages) -> float | str:
    """The weight of a linear model in the average with the network, or "auto"."""
    if not model.ngrams or model.head != "crf" or model.encoder == "linear":
        return 0.0
    if weight is not None:
        return weight
    if any(stage.continues or stage.soft_targets and stage.soft_targets[1] != 1 for stage in stages):
        return 0.0  # a linear model of the new sentences knows no old types, and learns at temperature 1
    return task_of(data.task).linear_weight


def _batch_size(windows: int) -> int:
    """The largest batch size, in windows, that leaves an epoch 100 updates, or the smallest."""
    return max((size for size in BATCH_SIZES if windows >= size * STEPS_OF_AN_EPOCH), default=BATCH_SIZES[0])


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
            f"{'up to ' if training.patience else ''}{training.epochs} epoch{'s' * (training.epochs != 1)} of "
            f"{config.facts.steps:,} steps",
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

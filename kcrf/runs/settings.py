"""The settings of a training run, as the user passes them. Needs no Keras.

Each setting is a field of one part, with its default, range, condition, help and flag. `Settings` checks the values and
lists them in its docstring, and `kcrf.commands.training_options` creates the options of `kcrf train`. To add an option,
add a field.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from kcrf.runs.model_config import ModelConfig
from kcrf.runs.options import Kind, check_settings, check_value, describe, options_of, with_defaults
from kcrf.runs.training_config import AugmentationConfig, DataConfig, OptimizerConfig, TeacherConfig, TrainingConfig
from kcrf.tasks import TASKS, SettingError

PARTS = (DataConfig, ModelConfig, OptimizerConfig, TrainingConfig, AugmentationConfig, TeacherConfig)
RENAMED = {"layers": "read_layers", "vectors_most": "max_vectors"}
Part = TypeVar("Part", DataConfig, ModelConfig, OptimizerConfig, TrainingConfig, AugmentationConfig, TeacherConfig)


@dataclass(frozen=True)
class Settings(TeacherConfig, AugmentationConfig, TrainingConfig, OptimizerConfig, ModelConfig, DataConfig):
    """The settings of a training run. All arguments are keywords, and values are checked.

    None means a default that depends on the task, the head, the BERT or the training data.
    `kcrf.runs.resolve` decides on all of them, once the data are known.

    Raises:
        kcrf.runs.SettingError: A value has the wrong type, is out of range, contradicts another value, or does not
            apply to the run. It is a ValueError.

    >>> settings = Settings(task="ner", epochs=3)
    >>> settings.epochs, settings.scheme, settings.part(DataConfig).scheme
    (3, None, 'bio')

    """

    layers: str | None = None  # the old names of RENAMED work for one release
    vectors_most: int | None = None

    def __post_init__(self) -> None:
        for old, new in RENAMED.items():
            if getattr(self, old) is not None:
                warnings.warn(f"`{old}` is now `{new}`", DeprecationWarning, stacklevel=4)
        settings = self.renamed()
        for name in ("task", "head"):  # on which defaults and choices of others depend
            setting = next(setting for setting in fields(self) if setting.name == name)
            check_value(setting, getattr(settings, name), settings.kind)
        # the model that is extended decides on these, and `extended_settings` checks them
        of_model = ("bert", "encoder", "head") if self.extend is not None and self.encoder is None else ()
        check_settings(settings, settings.kind, of_model)
        _check_pool(settings.values())
        _check_linear(settings.values())
        _check_lbfgs(settings)
        _check_linear_weight(settings)
        if settings.incomplete and settings.extend is not None:
            raise SettingError("incomplete", "has no effect with {extend}; see {marked}", {"incomplete": True})

    def renamed(self) -> "Settings":
        """Replaces old names of settings by the current ones."""
        if all(getattr(self, old) is None for old in RENAMED):
            return self
        said = {setting.name: getattr(self, setting.name) for setting in options_of(self)}
        said |= {new: getattr(self, old) for old, new in RENAMED.items() if getattr(self, old) is not None}
        return Settings(**said)

    @property
    def kind(self) -> Kind:
        """The kind of run, on which defaults and choices depend."""
        task = TASKS.get(self.task) if isinstance(self.task, str) else None
        head = self.head or (task.defaults.get("head", "crf") if task else "crf")
        linear = ("linear",) if self.encoder == "linear" else ()
        scratch = ("scratch",) if self.extend is None else ("extended", "scratch")
        return Kind((*linear, *(scratch if self.bert is None else ("bert",)), head), task)

    def values(self) -> dict[str, Any]:
        """All settings by name, with the defaults that depend on the task, the head and the BERT."""
        return with_defaults(self.renamed(), self.kind)

    def part(self, part: type[Part]) -> Part:
        """A part of the settings, such as `ModelConfig`, with the defaults as in `values`."""
        values = self.values()
        return part(**{setting.name: values[setting.name] for setting in fields(part)})

    def said(self) -> dict[str, Any]:
        """The settings that differ from their defaults, by name."""
        settings = self.renamed()
        values = {setting.name: (getattr(settings, setting.name), setting.default) for setting in options_of(self)}
        return {name: value for name, (value, default) in values.items() if value != default}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Settings":
        """Creates settings from a dict of values by name. Refuses unknown names."""
        unknown = sorted(set(values) - {setting.name for setting in fields(cls)})
        if unknown:
            raise ValueError(f"Settings have no {', '.join(unknown)}. Received: {sorted(values)}")
        return cls(**values)


def _check_pool(values):
    """Raises a `SettingError` if `pool` contradicts another setting."""
    pool = values["pool"]
    needed = {"pooler": ("read_layers", "last"), "cnn": ("layer_pooling", "concat")}
    for name, value in [needed[pool], ("encoder", "none")] if pool in needed else []:
        if values[name] != value:
            raise SettingError(name, f"must be {value!r} for {{pool:{pool!r}}}", values[name])


def _check_linear(values):
    """Raises a `SettingError` if a setting contradicts a linear model, which consists of n-grams and a CRF."""
    if values["encoder"] != "linear":
        return
    if TASKS[values["task"]].output != "tags":
        received = {name: values[name] for name in ("encoder", "task")}
        raise SettingError("encoder", "must be neural, or none, for {task:'classify'}", received)
    for name, needed in (("ngrams", True), ("head", "crf"), ("teacher_temperature", 1)):
        if values[name] != needed:
            received = {name: values[name], "encoder": "linear"}
            raise SettingError(name, f"must be {needed!r} for {{encoder:'linear'}}", received)
    multiplier = values["crf_lr_multiplier"]
    if multiplier != "auto":
        received = {"crf_lr_multiplier": multiplier, "encoder": "linear"}
        raise SettingError("crf_lr_multiplier", "has no effect with {encoder:'linear'}", received)
    if values["solver"] == "adagrad" and values["l2"] is not None:
        raise SettingError("l2", "needs {solver:'lbfgs'}", {name: values[name] for name in ("l2", "solver")})


def _check_lbfgs(settings):
    """Raises a `SettingError` if L-BFGS should have a learning rate or batches: it has neither."""
    for name in ("learning_rate", "batch_size"):
        value = getattr(settings, name)
        if value is not None and (settings.solver == "lbfgs" or settings.l2 is not None):
            received = {name: value, "solver": "lbfgs"}
            raise SettingError(name, "has no effect with {solver:'lbfgs'}", received)


def _check_linear_weight(settings):
    """Raises a `SettingError` if a network should be averaged with a linear model that cannot learn the same."""
    values = settings.values()
    for name, is_right, requirement in (
        ("ngrams", values["ngrams"], "needs {ngrams:True}"),
        ("head", values["head"] == "crf", "needs {head:'crf'}"),
        ("encoder", values["encoder"] != "linear", "has no effect with {encoder:'linear'}"),
        ("teacher_temperature", values["teacher_temperature"] == 1, "needs {teacher_temperature:1}"),
    ):
        if settings.linear_weight and not is_right:
            received = {"linear_weight": settings.linear_weight, name: values[name]}
            raise SettingError("linear_weight", requirement, received)


_OPTIONS = describe(setting for part in PARTS for setting in fields(part))
Settings.__doc__ = f"{Settings.__doc__ or ''}\n    {_OPTIONS}"  # `python -OO` drops docstrings

"""The settings of a training run, as the user passes them. Needs no Keras.

Each setting is a field of one part, with its default, range, help and flag; `RULES` has the conditions between
settings. `Settings` checks the values and lists them in its docstring, and `kcrf.commands.training_options` creates the
options of `kcrf train`. To add an option, add a field.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

from kcrf.runs.model_config import ModelConfig
from kcrf.runs.options import GIVEN, Kind, Rule, check_settings, check_value, describe, plain, with_defaults
from kcrf.runs.stages import STAGES, AugmentationConfig, ExtensionConfig, IncompleteConfig, StageConfig, TeacherConfig
from kcrf.runs.training_config import DataConfig, OptimizerConfig, TrainingConfig
from kcrf.tasks import TASKS

OF_BERT = (
    "bert_layers read_layers skip_top_layers skip_pooler lower_case word_case mixout head_lr_multiplier "
    "layerwise_decay weight_decay bias_correction prior_decay precision"
)
RULES = (
    Rule(OF_BERT, "bert", GIVEN),
    Rule("ngrams lexicon units linear_weight", "bert", None),
    Rule("encoder=linear", "task", "classify", is_refused=True),
    Rule("layer_pooling", "read_layers", "last", is_refused=True),
    Rule("pool=pooler", "read_layers", "last"),
    Rule("pool=pooler pool=cnn", "encoder", "none"),
    Rule("pool=cnn", "layer_pooling", "concat"),
    Rule("mixout prior_decay", "layerwise_decay", 0, is_refused=True),
    Rule("vectors_at train_vectors max_vectors", "vectors", GIVEN),
    Rule("constraints crf_lr_multiplier linear_weight encoder=linear", "head", "crf"),
    Rule("linear_weight encoder=linear", "ngrams", True),
    Rule("solver l1 l2", "encoder", "linear"),
    Rule("width depth dropout vectors warmup schedule batch_tokens", "encoder", "linear", is_refused=True),
    Rule("linear_weight crf_lr_multiplier", "encoder", "linear", is_refused=True),
    Rule("l2", "solver", "adagrad", is_refused=True),
    Rule("learning_rate batch_size", "solver", "lbfgs", is_refused=True),
    Rule("learning_rate batch_size", "l2", None),
    Rule("augment_by augment_share synonyms synonym_vectors", "augment", GIVEN),
    Rule("teacher_weight teacher_temperature", "teacher", GIVEN),
    Rule("linear_weight encoder=linear", "teacher_temperature", 1),
    Rule("marked", "extend", GIVEN),
    Rule("incomplete", "extend", GIVEN, is_refused=True),
)
PARTS = (DataConfig, ModelConfig, OptimizerConfig, TrainingConfig)
_ALL: tuple[type[Any], ...] = (*PARTS, *STAGES)
_PART_OF = {setting.name: part for part in _ALL for setting in fields(part)}
FIELDS = {setting.name: setting for part in _ALL for setting in fields(part)}
Part = TypeVar("Part")

if TYPE_CHECKING:  # `Settings` takes the fields of its parts as keywords, and has them as attributes

    @dataclass(frozen=True)
    class _Flat(
        TeacherConfig, ExtensionConfig, AugmentationConfig, IncompleteConfig,
        TrainingConfig, OptimizerConfig, ModelConfig, DataConfig,
    ): ...  # fmt: skip

else:
    _Flat = object


@dataclass(frozen=True, repr=False, kw_only=True)
class Settings(_Flat):
    """The settings of a training run. All arguments are keywords, and values are checked.

    Pass the settings below, or whole parts: `data`, `model`, `optimizer` and `training`, and a list of `stages`, which
    say where labels and texts come from. None means a default that depends on the task, the head, the BERT or the
    training data. `kcrf.runs.resolve` decides on all of them, once the data are known.

    Raises:
        kcrf.runs.SettingError: A value has the wrong type, is out of range, contradicts another value, or does not
            apply to the run. It is a ValueError.

    >>> settings = Settings(task="ner", epochs=3)
    >>> settings.epochs, settings.training.epochs, settings.scheme, settings.part(DataConfig).scheme
    (3, 3, None, 'bio')
    >>> settings
    Settings(task='ner', epochs=3)

    """

    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    training: TrainingConfig = TrainingConfig()
    stages: tuple[StageConfig, ...] = ()

    if not TYPE_CHECKING:

        def __init__(self, **values: Any) -> None:
            own = {field.name: field.default for field in fields(self)}
            parts = {name: values.pop(name, default) for name, default in own.items()}
            _check_names(values, own)
            stages = {type(stage): stage for stage in parts.pop("stages")}
            for name, part in parts.items():
                object.__setattr__(self, name, _with(part, values))
            made = [_with(stages.get(stage, stage()), values) for stage in STAGES]
            used = tuple(stage for stage in made if stage != type(stage)())
            object.__setattr__(self, "stages", used)
            self._check()

        def __getattr__(self, name: str) -> Any:
            if name not in _PART_OF:
                raise AttributeError(f"Settings has no attribute {name!r}", name=name, obj=self)
            return getattr(self._part(_PART_OF[name]), name)

    def __repr__(self) -> str:
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in self.said().items())})"

    def _part(self, part: type[Any]) -> Any:
        """A part as the user gave it, with None for what the user has not set."""
        parts = (self.data, self.model, self.optimizer, self.training, *self.stages)
        return next((found for found in parts if isinstance(found, part)), part())

    def _flat(self) -> dict[str, Any]:
        return {name: getattr(self._part(part), name) for name, part in _PART_OF.items()}

    def _check(self) -> None:
        said = self._flat()
        for name in ("task", "head"):  # on which defaults and choices of others depend
            check_value(FIELDS[name], said[name], self.kind)
        # the model that is extended decides on these, and `extended_settings` checks them
        of_model = ("bert", "encoder", "head") if self.continues and self.encoder is None else ()
        said["linear_weight"] = said["linear_weight"] or None  # 0 is no linear model
        check_settings(FIELDS.values(), said, self.kind, RULES, of_model)

    @property
    def continues(self) -> bool:  # type: ignore[override]
        """Whether the run continues the model of another run."""
        return any(stage.continues for stage in self.stages)

    @property
    def kind(self) -> Kind:
        """The kind of run, on which defaults and choices depend."""
        task = TASKS.get(self.task) if isinstance(self.task, str) else None
        head = self.head or (task.defaults.get("head", "crf") if task else "crf")
        linear = ("linear",) if self.encoder == "linear" else ()
        scratch = ("extended", "scratch") if self.continues else ("scratch",)
        return Kind((*linear, *(scratch if self.bert is None else ("bert",)), head), task)

    def values(self) -> dict[str, Any]:
        """All settings by name, with the defaults that depend on the task, the head and the BERT."""
        return with_defaults(FIELDS.values(), self._flat(), self.kind)

    def parts(self) -> tuple[Any, ...]:
        """The data, the model, the optimizer, the training, and all stages, with the defaults as in `values`."""
        values = self.values()
        return tuple(part(**{setting.name: values[setting.name] for setting in fields(part)}) for part in _ALL)

    def part(self, part: type[Part]) -> Part:
        """A part of the settings, such as `ModelConfig`, with the defaults as in `values`."""
        return self.parts()[_ALL.index(part)]

    def said(self) -> dict[str, Any]:
        """The settings that differ from their defaults, by name."""
        return {name: value for name, value in self._flat().items() if value != FIELDS[name].default}


def _with(part: Any, values: dict[str, Any]) -> Any:
    """Sets those flat values that belong to a part. Returns the part."""
    return replace(part, **{s.name: plain(values[s.name]) for s in fields(part) if s.name in values})


def _check_names(values: Iterable[str], own: Iterable[str]) -> None:
    """Raises TypeError for a name that is no setting."""
    for name in values:
        if name not in _PART_OF:
            near = get_close_matches(name, [*own, *_PART_OF], n=1)
            raise TypeError(f"Settings has no {name!r}{f'. Did you mean {near[0]!r}?' if near else ''}")


_OPTIONS = describe(FIELDS.values(), RULES)
Settings.__doc__ = f"{Settings.__doc__ or ''}\n    {_OPTIONS}"  # `python -OO` drops docstrings

"""A run that adds entity types to the model of another run: its settings and its types. Needs no Keras."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from kcrf.runs.folder import RunFolder
from kcrf.runs.model_config import ModelConfig
from kcrf.runs.names import SCORES
from kcrf.runs.options import NEURAL, option_of
from kcrf.runs.resolve import RunConfig
from kcrf.runs.settings import Settings
from kcrf.runs.training_config import DataConfig
from kcrf.tasks import SettingError

_FREE = {"crf_lr_multiplier", "dropout", "bigram_dropout", "word_dropout", "mixout", "min_probability", "limit"}
_OF_DATA = {"types", "labels", "limit", "incomplete"}  # which the new data decide
_KIND = ("task", "bert", "head", "encoder")  # on which the defaults of other settings depend


def extended_settings(values: Mapping[str, Any]) -> Settings:
    """The settings of a run that extends another one: those of the other model, then those of the user.

    Args:
        values: The user's settings by name, with `extend`. Dropout and the settings of training are free. Settings that
            decide what the model computes must be as in the other run.

    Raises:
        FileNotFoundError: There is no finished run.
        ValueError: It is not a run of --task ner, or a setting needs another model.
    """
    path = values["extend"]
    if os.path.isfile(path):
        raise ValueError(f"{path}: a model is extended from the folder of its run. Received: a file")
    folder = RunFolder(path)
    config = folder.read_config().config
    folder.existing(SCORES)  # written last: the run is complete
    if not config.task.is_extensible:
        raise ValueError(
            f"{path}: to be extended, a model needs entity types: --task ner. Received: --task {config.task.name}"
        )
    of_model = _settings_of(config)
    defaults = Settings(**{name: of_model[name] for name in _KIND}).values()
    for name in _names():
        needed = of_model.get(name, defaults[name])
        if name not in {*_FREE, *_OF_DATA} and values.get(name, needed) not in (needed, None):
            requirement = f"must be {needed!r}, as in the model of {{extend}}"
            if needed is None or needed is False:
                requirement = "contradicts {extend}, whose model is used as it is and was trained without this option"
            raise SettingError(name, requirement, {name: values[name], "extend": path})
    return Settings(**{**of_model, **{name: value for name, value in values.items() if value is not None}})


def _names() -> list[str]:
    return [setting.name for part in (DataConfig, ModelConfig) for setting in fields(part)]


def _settings_of(config: RunConfig) -> dict[str, Any]:
    """The settings of the data and the model of a run that differ from the defaults of this version."""
    ran = {name: value for name, value in config.flat().items() if name in _names() and name not in _OF_DATA}
    del ran["crf_lr_multiplier"]  # chosen by the number of steps
    kind = {name: ran[name] for name in _KIND}
    defaults = Settings(**kind).values()
    ignored = {s.name for s in fields(ModelConfig) if option_of(s).only is NEURAL and ran["encoder"] == "linear"}
    changed = {name: value for name, value in ran.items() if name not in ignored and value != defaults[name]}
    return {**kind, **changed}


def grown_types(path: Any, old: Iterable[str], in_data: Iterable[str], user: Iterable[str] = ()) -> tuple[str, ...]:
    """The types of an extended model: those of the old run, then the new ones.

    Args:
        path: The old run, for messages.
        old: The types of the old run.
        in_data: The types in the new training data.
        user: The types in the settings of the user, in their order. Defaults to no types: the new ones are sorted.

    Raises:
        ValueError: The data have no new type, or the user's types do not begin with those of the run.

    >>> grown_types("runs/people", ("PER", "LOC"), ("ORG", "PER"))
    ('PER', 'LOC', 'ORG')
    """
    old, user = tuple(old), tuple(user)
    if user and user[: len(old)] != old:
        raise ValueError(f"`types` must begin with those of {path}, {', '.join(old)}. Received: {', '.join(user)}")
    new = [label for label in user or sorted(in_data) if label not in old]
    if not new:
        raise ValueError(
            f"`train` needs entities of a type that {path} lacks; it has {', '.join(old)}. "
            f"Received: {', '.join(sorted(in_data)) or 'no entity'}"
        )
    return (*old, *new)


def marked_types(
    marked: str | None, old: Iterable[str], types: Iterable[str], in_data: Iterable[str]
) -> tuple[str, ...]:
    """The types that new training data mark wherever they occur.

    Args:
        marked: The setting of the user, names separated by commas; None stands for the types in the data.
        old: The types of the old run.
        types: The types of the extended model.
        in_data: The types in the new training data.

    Raises:
        ValueError: A name is not a type, or a new type is not among them.

    >>> marked_types(None, ("PER", "LOC"), ("PER", "LOC", "ORG"), {"ORG", "PER"})
    ('PER', 'ORG')
    """
    types, new = tuple(types), [label for label in types if label not in tuple(old)]
    names = set(in_data) | set(new) if marked is None else {name.strip() for name in marked.split(",")}
    if not set(new) <= names <= set(types):
        raise ValueError(
            f"`marked` must be names of {', '.join(types)}, with the new types, {', '.join(new)}. Received: {marked}"
        )
    return tuple(label for label in types if label in names)

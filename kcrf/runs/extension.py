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

__all__ = ["extended_settings", "grown_types", "marked_types"]

_FREE = {"crf_lr_multiplier", "dropout", "bigram_dropout", "word_dropout", "mixout", "min_confidence", "limit"}
_OF_DATA = {"types", "labels", "limit"}  # which the new data decide
_KIND = ("task", "bert", "head", "encoder")  # on which the defaults of other settings depend


def extended_settings(values: Mapping[str, Any]) -> Settings:
    """The settings of a run that extends another one: those of the other model, and what the user gave.

    Args:
        values: The settings that the user gave, by name, with `extend`. Dropout and the settings of training are free;
            those that decide what the model computes must be as in the other run.

    Raises:
        FileNotFoundError: There is no finished run.
        ValueError: It is not a run of --task ner, or the user wants another model.
    """
    path = values["extend"]
    if os.path.isfile(path):
        raise ValueError(f"{path}: a model is extended from the folder of its run. Received: a file")
    folder = RunFolder(path)
    config = folder.read_config().config
    folder.existing(SCORES)  # written last: the run is complete
    if config.task.name != "ner":
        raise ValueError(
            f"{path}: to be extended, a model needs entity types: --task ner. Received: --task {config.task.name}"
        )
    of_model = _settings_of(config)
    defaults = Settings(**{name: of_model[name] for name in _KIND}).values()
    for name in _names():
        needed = of_model.get(name, defaults[name])
        if name not in {*_FREE, *_OF_DATA} and values.get(name, needed) not in (needed, None):
            received = {name: values[name]}
            raise SettingError(name, f"must be {needed!r}, as in the model of {{extend}}", received)
    return Settings(**{**of_model, **{name: value for name, value in values.items() if value is not None}})


def _names() -> list[str]:
    return [setting.name for part in (DataConfig, ModelConfig) for setting in fields(part)]


def _settings_of(config: RunConfig) -> dict[str, Any]:
    """The settings of the data and the model of a run that are not at the defaults of the present version."""
    ran = {name: value for name, value in config.flat().items() if name in _names() and name not in _OF_DATA}
    del ran["crf_lr_multiplier"]  # chosen by the number of steps
    kind = {name: ran[name] for name in _KIND}
    defaults = Settings(**kind).values()
    ignored = {s.name for s in fields(ModelConfig) if option_of(s).only is NEURAL and ran["encoder"] == "linear"}
    changed = {name: value for name, value in ran.items() if name not in ignored and value != defaults[name]}
    return {**kind, **changed}


def grown_types(path: Any, old: Iterable[str], found: Iterable[str], given: Iterable[str] = ()) -> tuple[str, ...]:
    """The types of a model that is extended: its own, then the new ones.

    Args:
        path: The run, for messages.
        old: The types of the run.
        found: Those of the new training data.
        given: Those that the user gave, in their order. Defaults to none.

    Raises:
        ValueError: The data have no new type, or the user's types do not begin with those of the run.

    >>> grown_types("runs/people", ("PER", "LOC"), ("ORG", "PER"))
    ('PER', 'LOC', 'ORG')
    """
    old, given = tuple(old), tuple(given)
    if given and given[: len(old)] != old:
        raise ValueError(f"`types` must begin with those of {path}, {', '.join(old)}. Received: {', '.join(given)}")
    new = [label for label in given or sorted(found) if label not in old]
    if not new:
        raise ValueError(
            f"`train` needs entities of a type that {path} lacks; it has {', '.join(old)}. "
            f"Received: {', '.join(sorted(found)) or 'no entity'}"
        )
    return (*old, *new)


def marked_types(marked: str | None, old: Iterable[str], types: Iterable[str], found: Iterable[str]) -> tuple[str, ...]:
    """The types that new training data mark wherever they occur.

    Args:
        marked: What the user gave, names separated by commas; None stands for the types of the data.
        old: The types of the run that is extended.
        types: Those of the extended model.
        found: Those of the data.

    Raises:
        ValueError: A name is not a type, or a new type is not among them.

    >>> marked_types(None, ("PER", "LOC"), ("PER", "LOC", "ORG"), {"ORG", "PER"})
    ('PER', 'ORG')
    """
    types, new = tuple(types), [label for label in types if label not in tuple(old)]
    names = set(found) | set(new) if marked is None else {name.strip() for name in marked.split(",")}
    if not set(new) <= names <= set(types):
        raise ValueError(
            f"`marked` must be names of {', '.join(types)}, with the new types, {', '.join(new)}. Received: {marked}"
        )
    return tuple(label for label in types if label in names)

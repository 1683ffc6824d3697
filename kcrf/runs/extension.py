"""A run that adds entity types to the model of another run: its settings and its types. Needs no Keras."""

import os
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from kcrf.runs.folder import RunFolder
from kcrf.runs.model_config import ModelConfig
from kcrf.runs.names import SCORES
from kcrf.runs.resolve import RunConfig
from kcrf.runs.settings import RULES, Settings
from kcrf.runs.training_config import DataConfig
from kcrf.tasks import SettingError

_FREE = {"crf_lr_multiplier", "dropout", "bigram_dropout", "word_dropout", "mixout", "min_probability", "limit"}
_OF_DATA = {"types", "labels", "limit", "incomplete"}  # which the new data decide
_KIND = ("task", "bert", "head", "encoder")  # on which the defaults of other settings depend


def extended_settings(values: Mapping[str, Any]) -> Settings:
    """The settings of a run. If it extends another run, the settings of the other model come first, then the user's."""
    path = values.get("extend")
    if path is None:
        return Settings(**values)
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
    neural = [rule.names.split() for rule in RULES if rule.other == "encoder" and rule.is_refused]
    ignored = {name for names in neural for name in names if ran["encoder"] == "linear"}
    changed = {name: value for name, value in ran.items() if name not in ignored and value != defaults[name]}
    return {**kind, **changed}

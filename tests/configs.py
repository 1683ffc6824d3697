"""Configurations of runs that are not trained."""

from dataclasses import replace

from kcrf.runs import DataFacts, resolve
from kcrf.runs.config_file import StoredRun


def stored(settings, backend=None, temperature=1.0, **facts):
    """The content of `config.json` of a run with these settings and these facts."""
    config = replace(resolve(settings, DataFacts(**facts)), temperature=temperature)
    return StoredRun(settings, config, {}, backend)


def config_of(settings, **facts):
    """The `RunConfig` of such a run."""
    return stored(settings, **facts).config


def model_of(settings):
    """Its `ModelConfig`."""
    return config_of(settings).model

"""Opens the model of a run folder or of an exported file. Imports Keras only if the model needs it."""

import warnings
from collections.abc import Collection, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from kcrf.networks import array_networks, linear_networks
from kcrf.networks.network import ClassificationNetwork, TaggingNetwork
from kcrf.runs import RunFolder
from kcrf.runs.exported import ExportedFile, LinearFile, is_exported, open_exported
from kcrf.runs.model_files import ModelFiles
from kcrf.runs.names import BERT_CONFIG, LINEAR
from kcrf.runs.setup import Setup, load_setup
from kcrf.tasks import TASKS

_BUILT_IN = Path(__file__).parent / "data" / "zh_gsd"

Run = RunFolder | ExportedFile | LinearFile
RunPath = str | PathLike[str] | Run


def built_in_segmenter(with_labels: bool = False) -> Path:
    """The path of the built-in word segmenter, a linear model, or with `with_labels` of the one with word classes."""
    return _BUILT_IN / ("tagged.npz" if with_labels else "model.npz")


def open_run(run: RunPath) -> Run:
    """Opens the `RunFolder` or the exported file at a path. Both have `read_config`. An open one is returned as is."""
    if isinstance(run, Run):
        return run
    return open_exported(run) if is_exported(run) else RunFolder(run)


def is_linear(run: ModelFiles) -> bool:
    """Whether a `RunFolder` or an exported file contains a linear model, which needs only NumPy."""
    if isinstance(run, RunFolder):  # an incomplete copy lacks the file
        return run.file(LINEAR).is_file() or run.read_config().config.model.encoder == "linear"
    return isinstance(run, LinearFile)


def is_of_transformers(run: ModelFiles) -> bool:
    """Whether the model in a `RunFolder` or an exported file has an encoder of `transformers`."""
    return run.read_config().config.model.bert is not None and "transformers" in run.read_json(BERT_CONFIG)


def open_model(run: RunPath, tasks: Collection[str] = tuple(TASKS), standard: str | None = None) -> tuple[Any, Setup]:
    """Loads the network of a model, and its `Setup`. Warns if the training of the model has not finished."""
    run = open_run(run)
    setup = load_setup(run)
    task = setup.config.task
    if task.name not in tasks:
        raise ValueError(f"{run.path}: needs a run of --task {' or '.join(tasks)}. Received: one of --task {task.name}")
    if isinstance(run, RunFolder) and run.is_unfinished():
        warnings.warn(f"{run.path}: training has not finished; this is the best epoch so far", stacklevel=4)
    standards = setup.config.data.standards
    check_standard(run.path, standards, standard)
    standard = standards[0] if len(standards) == 1 else standard
    network = _read_network(run, setup, standard)
    return network, setup if standard is None else setup.of_standard(standard)


def check_standard(path: str | PathLike[str], standards: Sequence[str], standard: str | None) -> None:
    """Raises ValueError unless a model has a standard, or the user names none and the model has at most one."""
    if standard not in standards and len(standards) > (standard is None):
        raise ValueError(f"{path}: `standard` must be one of {', '.join(standards)}. Received: {standard or 'none'}")
    if standard is not None and not standards:
        raise ValueError(f"{path}: `standard` needs a model of several standards. Received: a model of one")


def _read_network(run: Run, setup: Setup, standard: str | None) -> TaggingNetwork | ClassificationNetwork:
    if isinstance(run, ExportedFile):
        return array_networks.read_network(run, setup)
    if isinstance(run, LinearFile) or is_linear(run):
        return linear_networks.read_network(run, setup, standard)
    from kcrf.networks import keras_networks

    return keras_networks.read_network(run, setup, standard)

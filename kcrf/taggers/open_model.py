"""Opens the model of a run folder or of an exported file. Imports Keras only if the model needs it."""

import warnings
from collections.abc import Collection, Sequence
from os import PathLike
from typing import Any

from kcrf.networks.network import ClassificationNetwork, TaggingNetwork
from kcrf.runs import RunFolder
from kcrf.runs.exported import ExportedFile, LinearFile, is_exported, open_exported
from kcrf.runs.model_files import ModelFiles
from kcrf.runs.names import LINEAR
from kcrf.runs.setup import Setup, load_setup
from kcrf.taggers.decoding import Tagger
from kcrf.taggers.trained_tagger import KerasTagger, TrainedTagger
from kcrf.tasks import TASKS

TAGGING = tuple(task.name for task in TASKS.values() if task.output == "tags")


def open_run(path: str | PathLike[str]) -> RunFolder | ExportedFile | LinearFile:
    """The `RunFolder` or the exported file at a path, both of which have `read_settings`."""
    return open_exported(path) if is_exported(path) else RunFolder(path)


def is_linear(run: ModelFiles) -> bool:
    """Whether a `RunFolder` or an exported file contains a linear model, which needs only NumPy."""
    if isinstance(run, RunFolder):  # an incomplete copy lacks the file
        return run.file(LINEAR).is_file() or run.read_config().config.model.encoder == "linear"
    return isinstance(run, LinearFile)


def open_model(
    path: str | PathLike[str], tasks: Collection[str] = tuple(TASKS), standard: str | None = None
) -> tuple[Any, Setup]:
    """Loads the network of a model, and its `Setup`. Warns if the training of the model has not finished.

    Args:
        path: A run folder or an exported file.
        tasks: The tasks for which the model may have been trained. Defaults to all tasks.
        standard: The segmentation standard, for a model of several. Defaults to None: the only one.

    Raises:
        FileNotFoundError: There is no run folder or file, or a file is missing.
        ValueError: It was written by a newer version or for another task, a file in it is damaged, or it has no such
            standard.
    """
    run = open_run(path)
    setup = load_setup(run)
    task = setup.config.task
    if task.name not in tasks:
        raise ValueError(f"{path}: needs a run of --task {' or '.join(tasks)}. Received: one of --task {task.name}")
    if isinstance(run, RunFolder) and run.is_unfinished():
        warnings.warn(f"{path}: training has not finished; this is the best epoch so far", stacklevel=4)
    standards = setup.config.data.standards
    check_standard(path, standards, standard)
    standard = standards[0] if len(standards) == 1 else standard
    network = _read_network(run, setup, standard)
    return network, setup if standard is None else setup.of_standard(standard)


def check_standard(path: str | PathLike[str], standards: Sequence[str], standard: str | None) -> None:
    """Raises ValueError unless a model has a standard, or the user names none and the model has at most one."""
    if standard not in standards and len(standards) > (standard is None):
        raise ValueError(f"{path}: `standard` must be one of {', '.join(standards)}. Received: {standard or 'none'}")
    if standard is not None and not standards:
        raise ValueError(f"{path}: `standard` needs a model of several standards. Received: a model of one")


def _read_network(
    run: RunFolder | ExportedFile | LinearFile, setup: Setup, standard: str | None
) -> TaggingNetwork | ClassificationNetwork:
    if isinstance(run, ExportedFile):
        from kcrf.networks import onnx_networks

        return onnx_networks.read_network(run, setup)
    if isinstance(run, LinearFile) or is_linear(run):
        from kcrf.networks import linear_networks

        return linear_networks.read_network(run, setup, standard)
    from kcrf.networks import keras_networks

    return keras_networks.read_network(run, setup, standard)


def load_tagger(path: str | PathLike[str], tasks: Collection[str] = TAGGING, standard: str | None = None) -> Tagger:
    """Loads the tagger of a run folder or of an exported file.

    Args:
        path: The folder or file.
        tasks: The tasks for which the model may have been trained. Defaults to all tasks with tags.
        standard: The segmentation standard, for a model of several. Defaults to None.

    Returns:
        A `KerasTagger` for a Keras model, a `TrainedTagger` for a linear model, a `Tagger` for an ONNX file.

    Raises:
        FileNotFoundError, ValueError: As for `open_model`.
    """
    network, setup = open_model(path, tasks, standard)
    return _tagger_class(open_run(path))(network, setup.reader, setup.config.model.min_probability)


def _tagger_class(run: RunFolder | ExportedFile | LinearFile) -> type[Tagger]:
    if isinstance(run, ExportedFile):
        return Tagger
    return TrainedTagger if is_linear(run) else KerasTagger


def load_trained_tagger(path: str | PathLike[str], tasks: Collection[str] = TAGGING) -> TrainedTagger:
    """Loads the tagger of a run folder, as `load_tagger`. Raises ValueError for an exported file."""
    if not isinstance(open_run(path), RunFolder):
        raise ValueError(f"{path}: needs a run folder. Received: an exported file")
    tagger: Any = load_tagger(path, tasks)
    return tagger

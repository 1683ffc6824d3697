"""Opens the model of a run folder, or an exported one. Imports Keras only for a network in a run folder."""

import warnings

from kcrf.runs import RunFolder
from kcrf.runs.exported import LinearFile, is_exported, open_exported
from kcrf.runs.names import LINEAR
from kcrf.taggers.decoding import Tagger
from kcrf.taggers.setup import load_setup
from kcrf.tasks import TASKS

__all__ = ["is_linear", "load_tagger", "open_model", "open_run"]

TAGGING = tuple(task.name for task in TASKS.values() if task.output == "tags")


def open_run(path):
    """The `RunFolder` or the exported file at a path, both of which have `read_settings`."""
    return open_exported(path) if is_exported(path) else RunFolder(path)


def is_linear(run):
    """Whether a `RunFolder` or an exported file holds a linear model, which needs NumPy alone."""
    return isinstance(run, LinearFile) or isinstance(run, RunFolder) and run.file(LINEAR).is_file()


def open_model(path, tasks=tuple(TASKS)):
    """The network of a model, and its `Setup`. Warns if its training has not finished.

    Args:
        path: A run folder or an exported file.
        tasks: The tasks that it may have been trained for. Defaults to all.

    Raises:
        FileNotFoundError: There is no run folder or file, or a file is missing.
        ValueError: It was written by a newer version or for another task, or a file in it is damaged.
    """
    run = open_run(path)
    setup = load_setup(run)
    task = setup.config.task
    if task.name not in tasks:
        raise ValueError(f"{path}: needs a run of --task {' or '.join(tasks)}. Received: one of --task {task.name}")
    if not is_exported(path) and run.is_unfinished():
        warnings.warn(f"{path}: training has not finished; this is the best epoch so far", stacklevel=4)
    if is_linear(run):
        from kcrf.taggers import linear_networks as networks
    elif is_exported(path):
        from kcrf.taggers import onnx_networks as networks
    else:
        from kcrf.taggers import keras_networks as networks
    return networks.read_network(run, setup), setup


def load_tagger(path, tasks=TAGGING):
    """The `Tagger` of a run folder or of an exported file, ready to use.

    Args:
        path: The folder or file.
        tasks: The tasks that it may have been trained for. Defaults to all with tags.

    Raises:
        FileNotFoundError: There is no run folder or file, or a file is missing.
        ValueError: It was written by a newer version or for another task, or a file in it is damaged.
    """
    network, setup = open_model(path, tasks)
    return Tagger(network, setup.reader, setup.config.model.min_confidence)

"""The run folder: settings, model and results of a training run. Needs no Keras."""

from kcrf.runs.folder import RunFolder
from kcrf.runs.records import RunRecord, read_run
from kcrf.runs.settings import Settings

__all__ = [
    "RunFolder",
    "RunRecord",
    "Settings",
    "read_run",
]

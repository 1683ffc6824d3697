"""The run folder: settings, model and results of a training run. Needs no Keras."""

from kcrf.runs.errors import DivergedError
from kcrf.runs.folder import RunFolder
from kcrf.runs.records import RunRecord, read_run
from kcrf.runs.settings import Settings

__all__ = [
    "DivergedError",
    "RunFolder",
    "RunRecord",
    "Settings",
    "read_run",
]

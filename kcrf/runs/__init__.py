"""The run folder: settings, model and results of a training run. Needs no Keras."""

from kcrf.runs.errors import DivergedError
from kcrf.runs.folder import RunFolder
from kcrf.runs.records import RunRecord, read_run
from kcrf.runs.settings import Settings
from kcrf.runs.writer import RunWriter

__all__ = [
    "DivergedError",
    "RunFolder",
    "RunRecord",
    "RunWriter",
    "Settings",
    "read_run",
]

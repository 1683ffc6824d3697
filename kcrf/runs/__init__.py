"""The run folder: what a training run is made of and what it leaves behind. Needs no Keras."""

from kcrf.runs.folder import RunFolder
from kcrf.runs.records import RunRecord, read_run
from kcrf.runs.settings import Settings

__all__ = [
    "RunFolder",
    "RunRecord",
    "Settings",
    "read_run",
]

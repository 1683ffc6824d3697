"""`CRFMonitor`, a callback that says after each epoch whether a CRF learns."""

from kcrf.training.monitor import CRFMonitor

__all__ = ["CRFMonitor"]

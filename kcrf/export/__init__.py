"""Writes trained models as files that run without Keras."""

from kcrf.deprecated import moved_names
from kcrf.export.write import export_model

__all__ = ["export_model"]

__getattr__ = moved_names(__name__)

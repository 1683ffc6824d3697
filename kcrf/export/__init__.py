"""Trained models as files that run without Keras."""

from kcrf.export.write import FORMATS, export_model

__all__ = ["FORMATS", "export_model"]

"""Writes trained models as files that run without Keras."""

from kcrf.export.write import export_model

__all__ = ["export_model"]

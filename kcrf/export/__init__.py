"""Trained models in production: exported files."""

from kcrf.export.onnx_file import export_onnx

__all__ = ["export_onnx"]

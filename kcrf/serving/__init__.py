"""Answers requests over HTTP with trained models. Needs `pip install 'kcrf[serve]'`."""

from kcrf.serving.app import build_app
from kcrf.serving.limits import Limits
from kcrf.serving.models import ServedModel, load_models
from kcrf.serving.server import open_socket, run_server

__all__ = [
    "Limits",
    "ServedModel",
    "build_app",
    "load_models",
    "open_socket",
    "run_server",
]

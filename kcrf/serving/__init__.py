"""Answers requests over HTTP with trained models. Needs `pip install 'kcrf[serve]'`."""

from kcrf.serving.app import build_app
from kcrf.serving.limits import Limits
from kcrf.serving.models import load_models

__all__ = ["Limits", "build_app", "load_models"]

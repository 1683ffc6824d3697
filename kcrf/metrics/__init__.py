"""Scores of words, entities and classes, calibration, bootstrap intervals, reports on transitions. Needs no Keras."""

from kcrf.metrics.classes import classification_scores, regression_scores
from kcrf.metrics.old_names import __getattr__
from kcrf.metrics.scores import calibration, entity_scores, segmentation_scores
from kcrf.metrics.transitions import advice, transition_report

__all__ = [
    "advice",
    "calibration",
    "classification_scores",
    "entity_scores",
    "regression_scores",
    "segmentation_scores",
    "transition_report",
]

"""Scores of words, entities and classes, calibration, bootstrap intervals, reports on transitions. Needs no Keras."""

from kcrf.metrics.bootstrap import bootstrap_difference, bootstrap_scores, f1_of_counts, span_counts
from kcrf.metrics.classes import classification_scores, regression_scores
from kcrf.metrics.scores import TextMismatch, calibration, entity_scores, segmentation_scores
from kcrf.metrics.transitions import advice, is_forbidden, transition_report

__all__ = [
    "TextMismatch",
    "advice",
    "bootstrap_difference",
    "bootstrap_scores",
    "calibration",
    "classification_scores",
    "entity_scores",
    "f1_of_counts",
    "is_forbidden",
    "regression_scores",
    "segmentation_scores",
    "span_counts",
    "transition_report",
]

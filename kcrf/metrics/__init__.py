"""Scores of words, entities and classes, calibration, comparison of runs, what transitions have learnt. No Keras."""

from kcrf.metrics.bootstrap import bootstrap_difference, span_counts
from kcrf.metrics.classes import classification_scores, regression_scores
from kcrf.metrics.scores import TextMismatch, calibration, entity_scores, segmentation_scores
from kcrf.metrics.transitions import advice, is_forbidden, transition_report

__all__ = [
    "TextMismatch",
    "advice",
    "bootstrap_difference",
    "calibration",
    "classification_scores",
    "entity_scores",
    "is_forbidden",
    "regression_scores",
    "segmentation_scores",
    "span_counts",
    "transition_report",
]

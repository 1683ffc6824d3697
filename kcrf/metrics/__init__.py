"""Scores of words and entities, calibration, comparison of taggers, what transitions have learnt. Needs no Keras."""

from kcrf.metrics.bootstrap import bootstrap_difference, span_counts
from kcrf.metrics.scores import TextMismatch, calibration, entity_scores, segmentation_scores
from kcrf.metrics.transitions import advice, is_forbidden, transition_report

__all__ = [
    "TextMismatch",
    "advice",
    "bootstrap_difference",
    "calibration",
    "entity_scores",
    "is_forbidden",
    "segmentation_scores",
    "span_counts",
    "transition_report",
]

"""Scores: SIGHAN's of words, conlleval's of entities, calibration, what transitions have learnt. Needs no Keras."""

from kcrf.metrics.scores import TextMismatch, calibration, entity_scores, segmentation_scores
from kcrf.metrics.transitions import advice, is_forbidden, transition_report

__all__ = [
    "TextMismatch",
    "advice",
    "calibration",
    "entity_scores",
    "is_forbidden",
    "segmentation_scores",
    "transition_report",
]

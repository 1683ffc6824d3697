"""Scores of words, entities, tokens and classes, calibration, bootstrap intervals, transitions. Needs no Keras."""

from kcrf.metrics.classes import classification_scores, multilabel_scores, regression_scores, token_scores
from kcrf.metrics.scores import calibration, entity_scores, segmentation_scores, tagged_word_scores
from kcrf.metrics.transitions import advice, transition_report

__all__ = [
    "segmentation_scores",
    "entity_scores",
    "classification_scores",
    "advice",
    "calibration",
    "multilabel_scores",
    "regression_scores",
    "tagged_word_scores",
    "token_scores",
    "transition_report",
]

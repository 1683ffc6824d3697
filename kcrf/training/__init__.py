"""Trains taggers and classifiers, and resumes training after an interruption."""

from kcrf.adversarial import adversarial, gradient_penalty, virtual_adversarial
from kcrf.runs.settings import Settings
from kcrf.taggers.open_model import load_tagger
from kcrf.training.train import resume_tagger, train_classifier, train_segmenter, train_tagger

__all__ = [
    "Settings",
    "adversarial",
    "gradient_penalty",
    "load_tagger",
    "resume_tagger",
    "train_classifier",
    "train_segmenter",
    "train_tagger",
    "virtual_adversarial",
]

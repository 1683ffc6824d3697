"""Trains taggers and classifiers, and resumes training after an interruption."""

from kcrf.runs.settings import Settings
from kcrf.training.curve import learning_curve
from kcrf.training.train import resume_tagger, train_classifier, train_segmenter, train_tagger

__all__ = ["train_tagger", "Settings", "resume_tagger", "train_classifier", "train_segmenter", "learning_curve"]

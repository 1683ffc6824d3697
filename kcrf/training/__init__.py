"""Trains taggers, and resumes training after an interruption."""

from kcrf.runs.settings import Settings
from kcrf.taggers.decoding import load_tagger
from kcrf.training.train import resume_tagger, train_segmenter, train_tagger

__all__ = [
    "Settings",
    "load_tagger",
    "resume_tagger",
    "train_segmenter",
    "train_tagger",
]

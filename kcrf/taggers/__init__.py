"""Uses trained models: text in, words or entities out, with their probabilities and the next best alternatives."""

from kcrf.taggers.decoding import Tagger, load_tagger
from kcrf.taggers.use import Entity, EntityRecognizer, WordSegmenter

__all__ = [
    "Entity",
    "EntityRecognizer",
    "Tagger",
    "WordSegmenter",
    "load_tagger",
]

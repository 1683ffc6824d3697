"""Uses trained models: text in, words, entities or a label out, with their probabilities and alternatives."""

from kcrf.taggers.classifier import Classification, TextClassifier
from kcrf.taggers.decoding import Tagger
from kcrf.taggers.open_model import load_tagger
from kcrf.taggers.use import Entity, EntityRecognizer, WordSegmenter

__all__ = [
    "Classification",
    "Entity",
    "EntityRecognizer",
    "Tagger",
    "TextClassifier",
    "WordSegmenter",
    "load_tagger",
]

"""Uses trained models: word segmentation, named entities, token tagging, text classification, with probabilities."""

from kcrf.taggers.classifier import Classification, TextClassifier
from kcrf.taggers.decoding import Tagger
from kcrf.taggers.entity_recognizer import Entity, EntityRecognizer
from kcrf.taggers.suggestions import Suggestion
from kcrf.taggers.token_tagger import TokenTagger
from kcrf.taggers.word_segmenter import WordSegmenter

__all__ = [
    "WordSegmenter",
    "EntityRecognizer",
    "TokenTagger",
    "TextClassifier",
    "Classification",
    "Entity",
    "Tagger",
]

"""Uses trained models: word segmentation, named entities, token tagging, text classification, with probabilities."""

from kcrf.taggers.entity_recognizer import EntityRecognizer
from kcrf.taggers.load import load_tagger
from kcrf.taggers.notebook import render
from kcrf.taggers.spans import Span
from kcrf.taggers.tagger import Tagger
from kcrf.taggers.text_classifier import Classification, TextClassifier
from kcrf.taggers.token_tagger import TokenTagger
from kcrf.taggers.word_segmenter import WordSegmenter

__all__ = [
    "WordSegmenter",
    "EntityRecognizer",
    "TokenTagger",
    "TextClassifier",
    "load_tagger",
    "render",
    "Tagger",
    "Span",
    "Classification",
]

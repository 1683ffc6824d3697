"""Converts texts to the inputs of a model: windows of integers, and the positions that have tags. Needs no Keras."""

from kcrf.readers.characters import CharacterReader
from kcrf.readers.lexicon import Lexicon
from kcrf.readers.ngrams import CharacterNGrams, WordNGrams
from kcrf.readers.pieces import EncoderReader, PieceReader, SubwordReader, encoder_reader
from kcrf.readers.standards import StandardsReader, TagsOfStandard
from kcrf.readers.units import Reader, Reading, Window, spans_of_units, tags_of_units
from kcrf.readers.vectors import WordVectors
from kcrf.readers.vocabulary import Vocabulary
from kcrf.readers.words import WordReader, WordVocabulary

__all__ = ["CharacterNGrams", "Lexicon", "Vocabulary", "WordNGrams", "WordVectors"]

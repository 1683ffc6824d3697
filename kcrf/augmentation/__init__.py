"""Altered copies of training data: texts with a label, sentences with entities, segmented sentences. Needs no Keras."""

from kcrf.augmentation.copies import OPERATIONS, altered_copies, copies_wanted
from kcrf.augmentation.synonyms import Synonyms, read_synonym_vectors, read_synonyms
from kcrf.augmentation.translation import back_translate

__all__ = [
    "OPERATIONS",
    "Synonyms",
    "altered_copies",
    "back_translate",
    "copies_wanted",
    "read_synonym_vectors",
    "read_synonyms",
]

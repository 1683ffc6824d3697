"""Altered copies of training data: texts with a label, sentences with entities, segmented sentences. Needs no Keras."""

from kcrf.augmentation.copies import altered_copies
from kcrf.augmentation.synonyms import Synonyms, read_synonyms

__all__ = ["Synonyms", "altered_copies", "read_synonyms"]

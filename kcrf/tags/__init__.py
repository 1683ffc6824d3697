"""Tag schemes: how words and entities become one tag per character, and back. Needs NumPy only.

Spans are half-open `[start, end)`. A segmentation span is `(start, end)`. The span of an entity, or of a word with its
class, is `(start, end, label)`.
"""

from kcrf.tags.scheme import TagScheme, bio, bioes, bmes, check_tags, classes, tags_to_words, words_to_tags

__all__ = ["bmes", "bio", "bioes", "words_to_tags", "tags_to_words", "check_tags", "TagScheme", "classes"]

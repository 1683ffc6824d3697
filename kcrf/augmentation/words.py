"""Augmentation of segmented sentences that keeps the word boundaries correct."""

from numpy.random import Generator

from kcrf.augmentation.pieces import choose, pick
from kcrf.augmentation.synonyms import Synonyms


def alter_words(
    words: list[str], name: str, share: float, synonyms: Synonyms, random: Generator, after: list[str]
) -> list[str]:
    """Alters a sentence, which is a list of words."""
    if name == "join":
        return [*words, *after]
    if name == "cut":
        return _cut(words, random)
    alternatives = [[other for other in synonyms.of(word) if len(other.split()) == 1] for word in words]  # no two words
    replaceable = [i for i, words_like in enumerate(alternatives) if words_like]
    new = {replaceable[n]: pick(random, alternatives[replaceable[n]]) for n in choose(random, len(replaceable), share)}
    return [new.get(i, word) for i, word in enumerate(words)]


def _cut(words: list[str], random: Generator) -> list[str]:
    if len(words) < 2:
        return words
    at = int(random.integers(1, len(words)))
    return words[:at] if random.random() < 0.5 else words[at:]

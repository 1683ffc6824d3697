"""Augmentation of segmented sentences that keeps the words true."""

from kcrf.augmentation.pieces import choose, pick

__all__ = ["alter_words"]


def alter_words(words, name, share, synonyms, random, after):
    """A sentence, a list of words, altered.

    Args:
        words: List of strings.
        name: "join", with the next sentence; "cut", at a word, of which one side is kept; or "synonyms": words that
            have synonyms become one with probability `share`, at least one.
        share: Above 0 and below 1.
        synonyms: `Synonyms`.
        random: A `numpy.random.Generator`.
        after: The words of the sentence after this one.

    Returns:
        A list of words.
    """
    if name == "join":
        return [*words, *after]
    if name == "cut":
        return _cut(words, random)
    alternatives = [[other for other in synonyms.of(word) if len(other.split()) == 1] for word in words]  # no two words
    replaceable = [i for i, words_like in enumerate(alternatives) if words_like]
    new = {replaceable[n]: pick(random, alternatives[replaceable[n]]) for n in choose(random, len(replaceable), share)}
    return [new.get(i, word) for i, word in enumerate(words)]


def _cut(words, random):
    if len(words) < 2:
        return words
    at = int(random.integers(1, len(words)))
    return words[:at] if random.random() < 0.5 else words[at:]

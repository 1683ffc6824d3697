"""Augmentation of segmented sentences that keeps the word boundaries correct."""

from kcrf.augmentation.pieces import choose, pick


def alter_words(words, name, share, synonyms, random, after):
    """Alters a sentence, which is a list of words.

    Args:
        words: List of strings.
        name: "join" appends the next sentence; "cut" splits the sentence at a random word and keeps one part;
            "synonyms" replaces words by synonyms, each with probability `share`, at least one.
        share: Above 0 and below 1.
        synonyms: `Synonyms`.
        random: A `numpy.random.Generator`.
        after: The words of the next sentence.

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

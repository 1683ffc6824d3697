"""Easy data augmentation of texts with a label (EDA; Wei and Zou 2019, https://arxiv.org/abs/1901.11196)."""

from dataclasses import replace

from kcrf.augmentation.pieces import (
    Piece,
    apart,
    choose,
    gap_between,
    group_words,
    pick,
    pieces_of,
    text_of,
    with_texts,
)

__all__ = ["alter_example"]


def alter_example(example, name, share, synonyms, random):
    """An `Example` with its text altered; of a pair one of the two texts.

    Args:
        example: The `Example`.
        name: "synonyms", "insertion", "swap" or "deletion". The first three change a share `share` of the words, at
            least one (swap: as many pairs); each word is deleted with probability `share`.
        share: Above 0 and below 1.
        synonyms: `Synonyms`. Its words are found in texts without blanks, too.
        random: A `numpy.random.Generator`.
    """
    field = "text" if example.text_b is None or random.random() < 0.5 else "text_b"
    pieces, tail = pieces_of(getattr(example, field))
    groups = group_words(pieces, synonyms.__contains__, synonyms.longest)
    words = [Piece(pieces[start].gap, text_of(pieces[start:stop])[len(pieces[start].gap) :]) for start, stop in groups]
    altered = apart(_OPERATIONS[name](words, share, synonyms, random), words)
    return replace(example, **{field: text_of(altered, tail)})


def _count(words, share):
    return max(1, int(share * len(words)))


def _replace(words, share, synonyms, random):
    """Each occurrence of some words that have synonyms becomes one of these, the same for all."""
    texts = [word.text for word in words]
    replaceable = [text for text in dict.fromkeys(texts) if synonyms.of(text)]
    chosen = random.permutation(len(replaceable))[: _count(words, share)].tolist()
    new = {replaceable[i]: pick(random, synonyms.of(replaceable[i])) for i in chosen}
    return with_texts(words, [new.get(text, text) for text in texts])


def _insert(words, share, synonyms, random):
    """Synonyms of some words are put at random places."""
    candidates = [word.text for word in words if synonyms.of(word.text)]
    for _ in range(_count(words, share) if candidates else 0):
        new = pick(random, synonyms.of(pick(random, candidates)))
        words = _with_inserted(words, int(random.integers(len(words) + 1)), new)
    return words


def _with_inserted(words, at, new):
    """The words with a new one before the word number `at`, and blanks around it where the language has them."""
    before, after = words[:at], words[at:]
    inserted = Piece(gap_between(before[-1].text, new) if before else words[0].gap, new)
    if not before:
        after = [Piece(gap_between(new, after[0].text), after[0].text), *after[1:]]
    return [*before, inserted, *after]


def _swap(words, share, synonyms, random):
    """Pairs of words change places."""
    texts = [word.text for word in words]
    for _ in range(_count(words, share) if len(words) > 1 else 0):
        i, j = random.permutation(len(texts))[:2].tolist()
        texts[i], texts[j] = texts[j], texts[i]
    return with_texts(words, texts)


def _delete(words, share, synonyms, random):
    """Words are left out; one word at least is kept."""
    if len(words) < 2:
        return words
    gone = set(choose(random, len(words), share))
    remaining = [word for i, word in enumerate(words) if i not in gone] or [pick(random, words)]
    return [Piece(words[0].gap, remaining[0].text), *remaining[1:]]


_OPERATIONS = {"synonyms": _replace, "insertion": _insert, "swap": _swap, "deletion": _delete}

"""Easy data augmentation of labeled texts (EDA; Wei and Zou 2019, https://arxiv.org/abs/1901.11196)."""

from dataclasses import replace

from numpy.random import Generator

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
from kcrf.augmentation.synonyms import Synonyms
from kcrf.corpora import Example


def alter_example(example: Example, name: str, share: float, synonyms: Synonyms, random: Generator) -> Example:
    """A copy of an `Example` with an altered text; for a pair, one of the two texts is altered."""
    field = "text" if example.text_b is None or random.random() < 0.5 else "text_b"
    pieces, tail = pieces_of(getattr(example, field))
    groups = group_words(pieces, synonyms.__contains__, synonyms.longest)
    words = [Piece(pieces[start].gap, text_of(pieces[start:stop])[len(pieces[start].gap) :]) for start, stop in groups]
    altered = apart(_OPERATIONS[name](words, share, synonyms, random), words)
    return replace(example, **{field: text_of(altered, tail)})


def _count(words: list[Piece], share: float) -> int:
    return max(1, int(share * len(words)))


def _replace(words: list[Piece], share: float, synonyms: Synonyms, random: Generator) -> list[Piece]:
    """Replaces all occurrences of random words by one of their synonyms, the same synonym for all occurrences."""
    texts = [word.text for word in words]
    replaceable = [text for text in dict.fromkeys(texts) if synonyms.of(text)]
    chosen = random.permutation(len(replaceable))[: _count(words, share)].tolist()
    new = {replaceable[i]: pick(random, synonyms.of(replaceable[i])) for i in chosen}
    return with_texts(words, [new.get(text, text) for text in texts])


def _insert(words: list[Piece], share: float, synonyms: Synonyms, random: Generator) -> list[Piece]:
    """Inserts synonyms of random words at random positions."""
    candidates = [word.text for word in words if synonyms.of(word.text)]
    for _ in range(_count(words, share) if candidates else 0):
        new = pick(random, synonyms.of(pick(random, candidates)))
        words = _with_inserted(words, int(random.integers(len(words) + 1)), new)
    return words


def _with_inserted(words: list[Piece], at: int, new: str) -> list[Piece]:
    """Inserts a new word before the word number `at`, with spaces around it if the language uses spaces."""
    before, after = words[:at], words[at:]
    inserted = Piece(gap_between(before[-1].text, new) if before else words[0].gap, new)
    if not before:
        after = [Piece(gap_between(new, after[0].text), after[0].text), *after[1:]]
    return [*before, inserted, *after]


def _swap(words: list[Piece], share: float, synonyms: Synonyms, random: Generator) -> list[Piece]:
    """Exchanges random pairs of words."""
    texts = [word.text for word in words]
    for _ in range(_count(words, share) if len(words) > 1 else 0):
        i, j = random.permutation(len(texts))[:2].tolist()
        texts[i], texts[j] = texts[j], texts[i]
    return with_texts(words, texts)


def _delete(words: list[Piece], share: float, synonyms: Synonyms, random: Generator) -> list[Piece]:
    """Deletes random words, but keeps at least one word."""
    if len(words) < 2:
        return words
    gone = set(choose(random, len(words), share))
    remaining = [word for i, word in enumerate(words) if i not in gone] or [pick(random, words)]
    return [Piece(words[0].gap, remaining[0].text), *remaining[1:]]


_OPERATIONS = {"synonyms": _replace, "insertion": _insert, "swap": _swap, "deletion": _delete}

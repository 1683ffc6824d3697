"""Lexicon features: how often a string of characters is a word in segmented text. Needs NumPy only."""

from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, repeat

import numpy as np

from kcrf.corpora import Sentence
from kcrf.readers.code_points import code_points, folded_characters
from kcrf.readers.vocabulary import fold_text

LENGTHS = (2, 3, 4, 5)  # of the counted words; the character embedding represents words of one character
_COUNTS = (1, 2, 5)  # kinds of words, by the minimum number of times that a string was a word
_SHARES = (0.0, 0.1, 0.5, 0.9)  # and by the minimum fraction of its occurrences in which it was a word
KINDS = len(_COUNTS) * len(_SHARES)
FACTOR = np.uint64(0x9E3779B97F4A7C15)  # of the keys of strings, odd
_SLOT_BITS = 20
_SHIFT = np.uint64(64 - _SLOT_BITS)


class Lexicon:
    """Counts how often strings of characters are words in a text, and how often they occur in total.

    It computes dictionary features (Zhang et al., 2018, "Neural Networks Incorporating Dictionaries for Chinese Word
    Segmentation"). Encode the counted sentences with `cross_fitted`: the lexicon contains all of their words.

    >>> from kcrf.corpora import Sentence
    >>> lexicon = Lexicon.of([Sentence("北京人", [(0, 2), (2, 3)]), Sentence("北京城", [(0, 3)])])
    >>> lexicon.words["北京"], lexicon.strings["北京"]
    (1, 2)
    """

    width = 2 * len(LENGTHS)  # the number of features of a character
    size = 1 + width * KINDS  # the number of different features
    columns = ("b", "e")  # the names of the results of `longest` in n-gram templates

    def __init__(self, words: Mapping[str, int], strings: Mapping[str, int]) -> None:
        self.words, self.strings = Counter(words), Counter(strings)
        self.kinds = {word: _kind(count, self.strings[word]) for word, count in self.words.items()}  # from 1

    @classmethod
    def of(cls, sentences: Sequence[Sentence]) -> "Lexicon":
        texts = [fold_text(sentence.text) for sentence in sentences]
        words = _word_counts(texts, sentences)
        return cls(words, _string_counts(texts, words))

    def without(self, sentences: Sequence[Sentence]) -> "Lexicon":
        """The lexicon without the counts of some of its sentences."""
        texts = [fold_text(sentence.text) for sentence in sentences]
        return Lexicon(self.words - _word_counts(texts, sentences), self.strings - _string_counts(texts, self.words))

    def with_words(self, counts: Mapping[str, int]) -> "Lexicon":
        """The lexicon with additional words of 2 to 5 characters, as if each had occurred a number of times."""
        additions = Counter[str]()
        for word, count in counts.items():
            if len(word) in LENGTHS:
                additions[fold_text(word)] += count
        return Lexicon(self.words + additions, self.strings + additions)

    def encode(self, text: str) -> np.ndarray:
        """Two features for each character and length: of the string that begins there, and of the one that ends there.

        Returns `(characters, width)` int32 below `size`, 0 if the string is not a word.
        """
        folded, rows = fold_text(text), np.zeros((len(text), self.width), "int32")
        for begins, length in enumerate(LENGTHS):
            kinds = np.fromiter(map(self.kinds.get, _strings_of(folded, length), repeat(0)), "int32")
            ends = begins + len(LENGTHS)
            rows[: len(kinds), begins] = np.where(kinds, begins * KINDS + kinds, 0)
            rows[length - 1 :, ends] = np.where(kinds, ends * KINDS + kinds, 0)
        return rows

    def longest(self, characters: np.ndarray) -> tuple[np.ndarray, ...]:
        """The longest word that may begin at each of `folded_characters`, and the longest word that may end there.

        Returns two uint32 arrays `(characters,)`: the largest feature of `encode`, 0 if there is no word.
        """
        begins, ends = np.zeros((2, len(characters)), "uint32")
        keys, index = characters.astype("uint64") * FACTOR, self._index
        for number, length in enumerate(LENGTHS):
            keys = (keys[:-1] + characters[length - 1 :]) * FACTOR  # of the strings of this length
            places, kinds = index.look_up(keys)
            begins[places] = number * KINDS + kinds
            ends[places + length - 1] = (number + len(LENGTHS)) * KINDS + kinds
        return begins, ends

    @cached_property
    def _index(self) -> "_Index":
        keys, kinds = [np.zeros(0, "uint64")], [np.zeros(0, "uint32")]
        for length in LENGTHS:
            words = [word for word in self.kinds if len(word) == length]
            rows = folded_characters(code_points("".join(words))).reshape(-1, length)  # (words, length)
            keys.append(_keys(rows))
            kinds.append(np.array([self.kinds[word] for word in words], "uint32"))
        return _Index(np.concatenate(keys), np.concatenate(kinds))


class StandardLexicon:
    """The lexicon of one segmentation standard, and the lexicon of the other standards as features of its own."""

    width, size = 2 * Lexicon.width, 2 * Lexicon.size
    columns = (*Lexicon.columns, "ob", "oe")

    def __init__(self, own: Lexicon, others: Lexicon) -> None:
        self.own, self.others = own, others

    def without(self, sentences: Sequence[Sentence]) -> "StandardLexicon":
        return StandardLexicon(self.own.without(sentences), self.others)

    def with_words(self, counts: Mapping[str, int]) -> "StandardLexicon":
        return StandardLexicon(self.own.with_words(counts), self.others)

    def encode(self, text: str) -> np.ndarray:
        """As `Lexicon.encode`, then the features of the other standards, with numbers of their own."""
        others = self.others.encode(text)
        return np.concatenate([self.own.encode(text), np.where(others, Lexicon.size + others, 0)], axis=1)

    def longest(self, characters: np.ndarray) -> tuple[np.ndarray, ...]:
        """As `Lexicon.longest`, for both lexicons: four arrays."""
        return (*self.own.longest(characters), *self.others.longest(characters))


AnyLexicon = Lexicon | StandardLexicon


class _Index:
    """Finds the kinds of words by their keys. Keys that begin with the same bits share a slot, in order."""

    def __init__(self, keys: np.ndarray, kinds: np.ndarray) -> None:
        order = np.argsort(keys)
        slots = np.arange(1 << _SLOT_BITS, dtype="uint64") << _SHIFT
        self._keys, self._kinds = np.append(keys[order], np.uint64(0)), kinds[order]
        self._firsts = np.searchsorted(keys[order], slots).astype("int32")  # of each slot
        counts = np.bincount((keys >> _SHIFT).astype("int64"), minlength=1)
        self._is_used, self._most = np.zeros(1 << _SLOT_BITS, bool), int(counts.max())
        self._is_used[keys >> _SHIFT] = True

    def look_up(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The indices of the keys that are words, and the kinds of these words."""
        places = np.flatnonzero(self._is_used[keys >> _SHIFT])
        keys = keys[places]
        firsts = self._firsts[keys >> _SHIFT]
        numbers = np.full(len(places), -1)
        for step in range(self._most):
            candidates = np.minimum(firsts + step, len(self._kinds))
            numbers = np.where(self._keys[candidates] == keys, candidates, numbers)
        hits = (numbers >= 0) & (numbers < len(self._kinds))
        return places[hits], self._kinds[numbers[hits]]


def _keys(rows: np.ndarray) -> np.ndarray:
    """A 64-bit key for each string, `(strings,)`, from its characters `(strings, length)`."""
    keys = np.zeros(len(rows), "uint64")
    for column in rows.T:
        keys = (keys + column) * FACTOR
    return keys


def cross_fitted(
    lexicon: AnyLexicon, sentences: Sequence[Sentence], copies: Sequence[Sequence[Sentence]] | None = None
) -> Iterator[tuple[Sentence, AnyLexicon]]:
    """Yields each sentence with a lexicon of other sentences, followed by its augmented copies.

    Each of five consecutive parts gets the lexicon of the other four. So in training, the words of a document are about
    as often out of vocabulary as in a new document.
    """
    copies = copies or [()] * len(sentences)
    cuts = [len(sentences) * i // 5 for i in range(6)]
    for start, stop in zip(cuts, cuts[1:]):
        part = sentences[start:stop]
        held_out_lexicon = lexicon.without(part) if part else lexicon
        for sentence, altered in zip(part, copies[start:stop], strict=True):
            yield from ((text, held_out_lexicon) for text in (sentence, *altered))


def _word_counts(texts: list[str], sentences: Sequence[Sentence]) -> Counter[str]:
    """Counts how often each string of `LENGTHS` is a word, or an entity, in sentences with these folded texts."""
    return Counter(
        text[start:end]
        for text, sentence in zip(texts, sentences, strict=True)
        for start, end, *_ in sentence.spans
        if end - start in LENGTHS
    )


def _string_counts(texts: list[str], words: Mapping[str, int]) -> Counter[str]:
    """Counts how often each of the words occurs in the texts as a string."""
    strings = (_strings_of(text, length) for text in texts for length in LENGTHS)
    return Counter(filter(words.__contains__, chain.from_iterable(strings)))


def _strings_of(text: str, length: int) -> list[str]:
    """All strings of this length in the text, from left to right."""
    return [text[start : start + length] for start in range(len(text) - length + 1)]


def _kind(count: int, strings: int) -> int:
    """The kind of a word, from 1, by its count, and by the fraction of its occurrences in which it is a word."""
    often, share = bisect(_COUNTS, count) - 1, bisect(_SHARES, count / strings) - 1
    return 1 + often * len(_SHARES) + share

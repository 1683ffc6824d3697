"""Lexicon features: how often a string of characters is a word in segmented text. Needs NumPy only."""

from bisect import bisect
from collections import Counter
from functools import cached_property
from itertools import chain, repeat

import numpy as np

from kcrf.readers.code_points import code_points, folded_characters
from kcrf.readers.vocabulary import fold_text

LENGTHS = (2, 3, 4, 5)  # of the counted words; the character embedding represents words of one character
_COUNTS = (1, 2, 5)  # kinds of words, by the minimum number of times that a string was a word
_SHARES = (0.0, 0.1, 0.5, 0.9)  # and by the minimum fraction of its occurrences in which it was a word
_KINDS = len(_COUNTS) * len(_SHARES)
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # of the keys of strings, odd
_SLOT_BITS = 20
_SHIFT = np.uint64(64 - _SLOT_BITS)


class Lexicon:
    """Counts how often strings of characters are words in a text, and how often they occur in total.

    The features are those of a dictionary (Zhang et al., 2018, "Neural Networks Incorporating Dictionaries for Chinese
    Word Segmentation"), computed from the training text. Do not encode the counted sentences with the same lexicon: it
    contains all of their words. Use `cross_fitted` for them.

    Args:
        words: A mapping from strings of 2 to 5 folded characters to the number of times that each is a word.
        strings: A mapping from the same strings to the number of occurrences of each.

    >>> from kcrf.corpora import Sentence
    >>> lexicon = Lexicon.of([Sentence("北京人", [(0, 2), (2, 3)]), Sentence("北京城", [(0, 3)])])
    >>> lexicon.words["北京"], lexicon.strings["北京"]
    (1, 2)
    """

    width = 2 * len(LENGTHS)  # the number of features of a character
    size = 1 + width * _KINDS  # the number of different features
    columns = ("b", "e")  # the names of the results of `longest` in n-gram templates

    def __init__(self, words, strings):
        self.words, self.strings = Counter(words), Counter(strings)
        self._kinds = {word: _kind(count, self.strings[word]) for word, count in self.words.items()}

    @classmethod
    def of(cls, sentences):
        """The lexicon of a list of `kcrf.corpora.Sentence`."""
        texts = [fold_text(sentence.text) for sentence in sentences]
        words = _words(texts, sentences)
        return cls(words, _strings(texts, words))

    def without(self, sentences):
        """The lexicon without the counts of some of its sentences."""
        texts = [fold_text(sentence.text) for sentence in sentences]
        return Lexicon(self.words - _words(texts, sentences), self.strings - _strings(texts, self.words))

    def with_words(self, counts):
        """The lexicon with additional words, as if each had occurred in the sentences a number of times.

        Args:
            counts: A mapping from words to these numbers. Words that do not have 2 to 5 characters are omitted.
        """
        additions = Counter()
        for word, count in counts.items():
            if len(word) in LENGTHS:
                additions[fold_text(word)] += count
        return Lexicon(self.words + additions, self.strings + additions)

    def encode(self, text):
        """The features of each character: for each length, of the strings that begin there and that end there.

        Returns:
            `(characters, width)` int32 below `size`; 0 if the string is not a word.
        """
        folded, rows = fold_text(text), np.zeros((len(text), self.width), "int32")
        for begins, length in enumerate(LENGTHS):
            kinds = np.fromiter(map(self._kinds.get, _strings_of(folded, length), repeat(0)), "int32")
            ends = begins + len(LENGTHS)
            rows[: len(kinds), begins] = np.where(kinds, begins * _KINDS + kinds, 0)
            rows[length - 1 :, ends] = np.where(kinds, ends * _KINDS + kinds, 0)
        return rows

    def longest(self, characters):
        """The longest word that may begin at each character, and the longest word that may end there.

        Args:
            characters: `(characters,)`, the result of `kcrf.readers.code_points.folded_characters`.

        Returns:
            Two uint32 arrays `(characters,)`: the largest feature of `encode` for words that begin at the character,
            and for words that end there; 0 if there is no word.
        """
        begins, ends = np.zeros((2, len(characters)), "uint32")
        keys, index = characters.astype("uint64") * _FACTOR, self._index
        for number, length in enumerate(LENGTHS):
            keys = (keys[:-1] + characters[length - 1 :]) * _FACTOR  # of the strings of this length
            places, kinds = index.look_up(keys)
            begins[places] = number * _KINDS + kinds
            ends[places + length - 1] = (number + len(LENGTHS)) * _KINDS + kinds
        return begins, ends

    @cached_property
    def _index(self):
        """The `_Index` of the words."""
        keys, kinds = [np.zeros(0, "uint64")], [np.zeros(0, "uint32")]
        for length in LENGTHS:
            words = [word for word in self._kinds if len(word) == length]
            rows = folded_characters(code_points("".join(words))).reshape(-1, length)  # (words, length)
            keys.append(_keys(rows))
            kinds.append(np.array([self._kinds[word] for word in words], "uint32"))
        return _Index(np.concatenate(keys), np.concatenate(kinds))


class StandardLexicon:
    """The lexicon of one segmentation standard, and that of the other standards as features of its own.

    The words of one standard are not words of another, but many are, and the features say which lexicon has a word. It
    has what `CharacterReader` uses of a `Lexicon`.

    Args:
        own: The `Lexicon` of the sentences of the standard.
        others: The `Lexicon` of the sentences of the other standards.
    """

    width, size = 2 * Lexicon.width, 2 * Lexicon.size
    columns = (*Lexicon.columns, "ob", "oe")

    def __init__(self, own, others):
        self.own, self.others = own, others

    def without(self, sentences):
        """The lexicon without what some sentences of the standard contributed."""
        return StandardLexicon(self.own.without(sentences), self.others)

    def with_words(self, counts):
        """The lexicon with more words of the standard, as `Lexicon.with_words`."""
        return StandardLexicon(self.own.with_words(counts), self.others)

    def encode(self, text):
        """As `Lexicon.encode`, then the features of the other standards, with numbers of their own."""
        others = self.others.encode(text)
        return np.concatenate([self.own.encode(text), np.where(others, Lexicon.size + others, 0)], axis=1)

    def longest(self, characters):
        """As `Lexicon.longest`, for both lexicons: four arrays."""
        return (*self.own.longest(characters), *self.others.longest(characters))


class _Index:
    """Finds the kinds of words by their keys.

    Words whose keys begin with the same bits share a slot, and are adjacent in the order of the keys.
    """

    def __init__(self, keys, kinds):
        order = np.argsort(keys)
        slots = np.arange(1 << _SLOT_BITS, dtype="uint64") << _SHIFT
        self._keys, self._kinds = np.append(keys[order], np.uint64(0)), kinds[order]
        self._firsts = np.searchsorted(keys[order], slots).astype("int32")  # of each slot
        counts = np.bincount((keys >> _SHIFT).astype("int64"), minlength=1)
        self._is_used, self._most = np.zeros(1 << _SLOT_BITS, bool), int(counts.max())
        self._is_used[keys >> _SHIFT] = True

    def look_up(self, keys):
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


def _keys(rows):
    """A 64-bit key for each string, `(strings,)`, from its characters `(strings, length)`."""
    keys = np.zeros(len(rows), "uint64")
    for column in rows.T:
        keys = (keys + column) * _FACTOR
    return keys


def cross_fitted(lexicon, sentences, copies=None, parts=5):
    """Yields each sentence of a lexicon with a lexicon of other sentences, followed by its augmented copies.

    The sentences are split into five consecutive parts, and each part gets the lexicon of the other four. So in
    training, the words of a document are about as often out of vocabulary as in a new document.

    Args:
        lexicon: `Lexicon.of` the sentences, and maybe of others.
        sentences: List of `kcrf.corpora.Sentence`, in the order of the text.
        copies: For each sentence a list of its augmented copies, which the lexicon does not count. They get the same
            lexicon as their sentence. Defaults to None: there are no copies.
        parts: The number of parts. Defaults to 5.

    Yields:
        Pairs of a sentence and a `Lexicon`.
    """
    copies = copies or [()] * len(sentences)
    cuts = [len(sentences) * i // parts for i in range(parts + 1)]
    for start, stop in zip(cuts, cuts[1:]):
        part = sentences[start:stop]
        held_out_lexicon = lexicon.without(part) if part else lexicon
        for sentence, altered in zip(part, copies[start:stop], strict=True):
            yield from ((text, held_out_lexicon) for text in (sentence, *altered))


def _words(texts, sentences):
    """Counts how often each string of `LENGTHS` is a word, or an entity, in sentences with these folded texts."""
    return Counter(
        text[start:end]
        for text, sentence in zip(texts, sentences, strict=True)
        for start, end, *_ in sentence.spans
        if end - start in LENGTHS
    )


def _strings(texts, words):
    """Counts how often each of the words occurs in the texts as a string."""
    strings = (_strings_of(text, length) for text in texts for length in LENGTHS)
    return Counter(filter(words.__contains__, chain.from_iterable(strings)))


def _strings_of(text, length):
    """All strings of this length in the text, from left to right."""
    return [text[start : start + length] for start in range(len(text) - length + 1)]


def _kind(count, strings):
    """The kind of a word, from 1, by its count, and by the fraction of its occurrences in which it is a word."""
    often, share = bisect(_COUNTS, count) - 1, bisect(_SHARES, count / strings) - 1
    return 1 + often * len(_SHARES) + share

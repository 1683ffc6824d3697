"""The words of a training text as features: how often what stands here was a word there. Needs NumPy only."""

from bisect import bisect
from collections import Counter
from itertools import chain, repeat

import numpy as np

from kcrf.readers.vocabulary import fold

__all__ = ["LENGTHS", "Lexicon", "cross_fitted"]

LENGTHS = (2, 3, 4, 5)  # characters of the words that count; the vectors of characters know those of one
_OFTEN = (1, 2, 5)  # times as a word, from which on it is of the next kind
_SHARES = (0.0, 0.1, 0.5, 0.9)  # the same of the share of its occurrences in which it is a word
_KINDS = len(_OFTEN) * len(_SHARES)


class Lexicon:
    """Words, how often each was one, and how often its characters stood in the text at all.

    Features of this kind are those of dictionaries (Zhang et al., 2018, "Neural Networks Incorporating Dictionaries
    for Chinese Word Segmentation"), taken from the training text alone. It must not be asked about the very sentences
    that it was counted in, where every word would be known: see `cross_fitted`.

    Args:
        words: A mapping from words of 2 to 5 folded characters to how often each was a word.
        strings: A mapping from the same to how often their characters stood next to each other.

    >>> from kcrf.corpora import Sentence
    >>> lexicon = Lexicon.of([Sentence("北京人", [(0, 2), (2, 3)]), Sentence("北京城", [(0, 3)])])
    >>> lexicon.words["北京"], lexicon.strings["北京"]
    (1, 2)
    """

    width = 2 * len(LENGTHS)  # features of a character
    size = 1 + width * _KINDS  # numbers of features

    def __init__(self, words, strings):
        self.words, self.strings = Counter(words), Counter(strings)
        self._kinds = {word: _kind(count, self.strings[word]) for word, count in self.words.items()}

    @classmethod
    def of(cls, sentences):
        """The lexicon of a list of `kcrf.corpora.Sentence`."""
        texts = [_folded(sentence.text) for sentence in sentences]
        words = _words(texts, sentences)
        return cls(words, _strings(texts, words))

    def without(self, sentences):
        """The lexicon of its text without some of its sentences."""
        texts = [_folded(sentence.text) for sentence in sentences]
        return Lexicon(self.words - _words(texts, sentences), self.strings - _strings(texts, self.words))

    def encode(self, text):
        """For each character, which kinds of words may begin there and which may end there, by their length.

        Returns:
            `(characters, width)` ints below `size`; 0 where there is none.
        """
        folded, rows = _folded(text), np.zeros((len(text), self.width), "int32")
        for begins, length in enumerate(LENGTHS):
            kinds = np.fromiter(map(self._kinds.get, _strings_of(folded, length), repeat(0)), "int32")
            ends = begins + len(LENGTHS)
            rows[: len(kinds), begins] = np.where(kinds, begins * _KINDS + kinds, 0)
            rows[length - 1 :, ends] = np.where(kinds, ends * _KINDS + kinds, 0)
        return rows


def cross_fitted(lexicon, sentences, parts=10):
    """Yields each of the sentences that a lexicon was counted in, with the lexicon of the others' text.

    A tenth at a time, in the order of the text, is seen with what the other nine say: so the words of a document are
    as unknown in training as those of a new one will be.

    Args:
        lexicon: `Lexicon.of` the sentences.
        sentences: List of `kcrf.corpora.Sentence`, in the order of the text.
        parts: Into how many parts they are cut. Defaults to 10.

    Yields:
        Pairs of a sentence and a `Lexicon`.
    """
    cuts = [len(sentences) * i // parts for i in range(parts + 1)]
    for start, stop in zip(cuts, cuts[1:]):
        part = sentences[start:stop]
        others = lexicon.without(part) if part else lexicon
        yield from ((sentence, others) for sentence in part)


def _folded(text):
    return "".join(map(fold, text))


def _words(texts, sentences):
    """How often each stretch of `LENGTHS` is a word, or an entity, of the sentences with these folded texts."""
    return Counter(
        text[start:end]
        for text, sentence in zip(texts, sentences, strict=True)
        for start, end, *_ in sentence.spans
        if end - start in LENGTHS
    )


def _strings(texts, words):
    """How often the characters of each of the words stand in the texts."""
    strings = (_strings_of(text, length) for text in texts for length in LENGTHS)
    return Counter(filter(words.__contains__, chain.from_iterable(strings)))


def _strings_of(text, length):
    """All stretches of the text of this length, from left to right."""
    return [text[start : start + length] for start in range(len(text) - length + 1)]


def _kind(count, strings):
    """The kind of a word from 1 on, by how often it was one and in which share of its occurrences."""
    often, share = bisect(_OFTEN, count) - 1, bisect(_SHARES, count / strings) - 1
    return 1 + often * len(_SHARES) + share

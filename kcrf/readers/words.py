"""Reads a text word by word, for named-entity recognizers and token taggers trained from scratch. Needs NumPy only."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np

from kcrf.corpora import Sentence
from kcrf.readers.ngrams import WordNGrams
from kcrf.readers.units import Reader, Reading, Tokens
from kcrf.readers.vectors import WordVectors
from kcrf.readers.vocabulary import UNKNOWN, fold_text, joined
from kcrf.readers.windows import last_characters, windows, windows_of_rows
from kcrf.readers.word_tokens import AFFIXES, splits_of, token_spans, word_features

SPELLING = 16  # characters of a word that the model reads: the first and the last ones of a longer word


class WordVocabulary:
    """Numbers words, characters, and features of words. 0 is padding, 1 is unknown.

    Words are folded. Their case is in the features, and in the characters, in which only digits are folded.
    """

    width = 1 + 2 * len(AFFIXES)  # the number of features of a word

    def __init__(self, words: Iterable[str], characters: Iterable[str], features: Iterable[str]) -> None:
        self.words, self.characters, self.features = self.lists = list(words), list(characters), list(features)
        numbers = ({item: i for i, item in enumerate(items, 2)} for items in self.lists)
        self._words, self._characters, self._features = numbers

    @classmethod
    def of(cls, words: Iterable[str], min_words: int = 2, min_characters: int = 2, min_features: int = 3) -> Self:
        """All entries of some words with a minimum count, most frequent first, so that a model learns unknown words."""
        counts = Counter(words)
        folded, characters, features = Counter[str](), Counter[str](), Counter[str]()
        for word, count in counts.items():
            folded[fold_text(word)] += count
            for items, counter in ((map(_as_read, word), characters), (word_features(word), features)):
                for item in items:
                    counter[item] += count
        kept = _frequent(folded, min_words), _frequent(characters, min_characters)
        return cls(*kept, _frequent(features, min_features))

    def grown(self, words: Iterable[str]) -> "WordVocabulary":
        """The vocabulary with the entries of `of(words)` that it lacks, with the next numbers."""
        other = WordVocabulary.of(words)
        return WordVocabulary(*joined(self.lists, other.lists))

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The sizes of the vocabularies of words, characters and features."""
        return len(self.words) + 2, len(self.characters) + 2, len(self.features) + 2

    def encode(self, words: Sequence[str]) -> dict[str, np.ndarray]:
        """The numbers of tokens `(words,)`, spellings `(words, SPELLING)`, features `(words, width)`; 0 for none."""
        spelling = np.zeros((len(words), SPELLING), "int32")
        features = np.zeros((len(words), self.width), "int32")
        for i, word in enumerate(words):
            read = word if len(word) <= SPELLING else word[: SPELLING // 2] + word[-SPELLING // 2 :]
            spelling[i, : len(read)] = [self._characters.get(_as_read(c), UNKNOWN) for c in read]
            features[i] = [self._features.get(f, UNKNOWN) if f else 0 for f in word_features(word)]
        tokens = np.array([self._words.get(fold_text(word), UNKNOWN) for word in words], "int32")
        return {"tokens": tokens, "spelling": spelling, "features": features}


def _as_read(character: str) -> str:
    return "0" if character.isdecimal() else character


def _frequent(counts: Counter[str], least: int) -> list[str]:
    return [item for item, count in counts.most_common() if item and count >= least]


class WordReader(Reader):
    """Reads texts whose units are words, with three inputs: words, characters, and features of the spelling."""

    def __init__(
        self,
        vocabulary: WordVocabulary | None,
        splits: str = "",
        ngrams: WordNGrams | None = None,
        vectors: WordVectors | None = None,
    ) -> None:
        self.vocabulary, self.splits, self.ngrams, self.vectors = vocabulary, splits, ngrams, vectors

    def read(self, texts: Sequence[str], tokens: Tokens = None) -> list[Reading]:
        units = [self.units_of(*pair) for pair in zip(texts, tokens or [()] * len(texts), strict=True)]
        numbers: dict[str, int] = {}  # of the different words
        flat = [
            numbers.setdefault(text[start:end], len(numbers))
            for text, spans in zip(texts, units, strict=True)
            for start, end in spans.tolist()
        ]
        encoded = {} if self.vocabulary is None else self.vocabulary.encode(list(numbers))
        rows = {name: array[flat] for name, array in encoded.items()}  # (words, ...)
        if self.ngrams is not None and texts:
            words = ([text[a:b] for a, b in spans.tolist()] for text, spans in zip(texts, units, strict=True))
            rows["ngrams"] = np.concatenate(self.ngrams.encode(list(words)))
        if self.vectors is not None and texts:
            rows["vectors"] = np.concatenate([self.vectors.encode(*pair) for pair in zip(texts, units, strict=True)])
        firsts = np.cumsum([0, *map(len, units)]).tolist()
        readings = []
        for text, spans, first in zip(texts, units, firsts, strict=False):
            bounds = windows(last_characters(text, spans[:, 1]))
            readings.append(Reading(spans, windows_of_rows(rows, bounds, first)))
        return readings

    def units_of(self, text: str, tokens: Sequence[tuple[int, int]] = ()) -> np.ndarray:
        """The units of a text, `(units, 2)`: its tokens, or if it has none, the result of `token_spans`."""
        return _units_of(text, tokens, self.splits)

    def get_config(self) -> dict[str, Any]:
        config: dict[str, Any] = {"splits": self.splits}
        if self.vocabulary is not None:
            config = {**dict(zip(("tokens", "characters", "features"), self.vocabulary.lists)), **config}
        return config if self.ngrams is None else {**config, "ngrams": self.ngrams.get_config()}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates a reader from the result of `get_config`."""
        ngrams = WordNGrams.from_config(config["ngrams"]) if "ngrams" in config else None
        lists: list[Any] = [config.get(name) for name in ("tokens", "characters", "features")]
        splits = config.get("splits", "")
        if not isinstance(splits, str):
            raise ValueError(f"needs a string, splits. Received: {str(splits)[:80]}")
        if lists == [None] * 3 and ngrams is not None:
            return cls(None, splits, ngrams)
        if not all(isinstance(items, list) and all(isinstance(item, str) for item in items) for items in lists):
            raise ValueError(f"needs lists of strings: tokens, characters, features. Received: {str(config)[:80]}")
        return cls(WordVocabulary(*lists), splits, ngrams)

    @classmethod
    def of(cls, sentences: Sequence[Sentence]) -> Self:
        """Creates a reader for a training set, a list of `kcrf.corpora.Sentence`."""
        splits = splits_of(sentences)
        return cls(WordVocabulary.of(_words_of(sentences, splits)), splits)

    def grown(self, sentences: Sequence[Sentence]) -> "WordReader":
        """The reader with the vocabulary of more sentences, whose entries have the next numbers."""
        words = _words_of(sentences, self.splits)
        return self.changed(vocabulary=self.vocabulary and self.vocabulary.grown(words))


def _words_of(sentences: Sequence[Sentence], splits: str) -> Iterator[str]:
    """All words of some sentences, one by one."""
    for sentence in sentences:
        for start, end in _units_of(sentence.text, sentence.tokens, splits).tolist():
            yield sentence.text[start:end]


def _units_of(text: str, tokens: Sequence[tuple[int, int]], splits: str) -> np.ndarray:
    return np.array(tokens, int).reshape(-1, 2) if len(tokens) else token_spans(text, splits)

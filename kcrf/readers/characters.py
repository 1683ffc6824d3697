"""Reads a text character by character, for models trained from scratch."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Self

import numpy as np

from kcrf.corpora import Sentence
from kcrf.readers.code_points import code_points, types_of_characters
from kcrf.readers.lexicon import AnyLexicon, Lexicon, StandardLexicon, cross_fitted
from kcrf.readers.ngrams import LEXICON_COLUMNS, CharacterNGrams
from kcrf.readers.units import Copies, Reader, Reading, Texts, Tokens
from kcrf.readers.vectors import WordVectors
from kcrf.readers.vocabulary import Vocabulary
from kcrf.readers.windows import SEPARATOR, bounds_of_parts, cut_pair, whole_reading, windows, windows_of_rows


class CharacterReader(Reader):
    """Reads texts whose units are characters, with inputs for characters, bigrams, and the words around a character.

    A linear model has no vocabulary: it reads only n-grams, which may need a lexicon.
    """

    def __init__(
        self,
        vocabulary: Vocabulary | None,
        lexicon: AnyLexicon | None = None,
        ngrams: CharacterNGrams | None = None,
        types: bool = False,
        vectors: WordVectors | None = None,
    ) -> None:
        columns = lexicon.columns if lexicon is not None else ()
        if ngrams is not None and (missing := (ngrams.used & LEXICON_COLUMNS).difference(columns)):
            needed = ", ".join(sorted(missing))
            raise ValueError(f"n-grams with the columns {needed} need a lexicon that has them. Received: {columns}")
        self.vocabulary, self.ngrams = vocabulary, ngrams
        self.lexicon: Any = lexicon
        self.types, self.vectors = types, vectors

    def read(self, texts: Sequence[str], tokens: Tokens = None) -> list[Reading]:
        return self._read(texts, self.lexicon)

    def read_training(self, sentences: Sequence[Sentence], copies: Copies = None) -> list[Reading]:
        """Reads each sentence with the lexicon of other sentences: the whole lexicon contains all of its words."""
        if self.lexicon is None:
            return super().read_training(sentences, copies)
        readings = []
        for lexicon, part in groupby(cross_fitted(self.lexicon, sentences, copies), key=itemgetter(1)):
            readings += self._read([sentence.text for sentence, _ in part], lexicon)
        return readings

    def with_words(self, counts: Mapping[str, int]) -> "CharacterReader":
        """The reader with additional words in its lexicon, from a mapping from words to counts."""
        return self.changed(lexicon=self.lexicon and self.lexicon.with_words(counts))

    def grown(self, sentences: Sequence[Sentence], min_bigrams: int) -> "CharacterReader":
        """The reader with the vocabulary of more sentences, whose entries have the next numbers."""
        texts = [sentence.text for sentence in sentences]
        return self.changed(vocabulary=self.vocabulary and self.vocabulary.grown(texts, min_bigrams))

    def read_texts(self, texts: Texts, max_length: int, whole: bool = False) -> list[Reading]:
        readings = []
        for text, text_b in texts:
            joined = cut = text
            if text_b is not None:
                joined, cut = map(SEPARATOR.join, ((text, text_b), cut_pair(text, text_b, max_length - 1)))
            bounds = bounds_of_parts(cut, max_length, whole and text_b is None)
            parts = [cut[start:end] for start, end in bounds]
            readings.append(whole_reading([self._rows(x, _units(x)) for x in parts], bounds[-1][1] < len(joined)))
        return readings

    def _read(self, texts: Sequence[str], lexicon: AnyLexicon | None) -> list[Reading]:
        ngrams: Sequence[Any] = self.ngrams.encode(texts, lexicon) if self.ngrams and texts else [None] * len(texts)
        return [self._read_one(*pair, lexicon) for pair in zip(texts, ngrams, strict=True)]

    def _rows(self, text: str, units: np.ndarray, lexicon: AnyLexicon | None = None) -> dict[str, Any]:
        rows: dict[str, Any] = {}
        if self.vocabulary is not None:
            rows.update(zip(("characters", "bigrams"), self.vocabulary.encode(text), strict=True))
            if lexicon is not None:
                rows["words"] = lexicon.encode(text)
        if self.types:
            rows["types"] = types_of_characters(code_points(text))
        if self.vectors is not None:
            rows["vectors"] = self.vectors.encode(text, units)
        return rows

    def _read_one(self, text: str, ngrams: np.ndarray | None, lexicon: AnyLexicon | None) -> Reading:
        units = _units(text)
        rows = self._rows(text, units, lexicon)
        if ngrams is not None:
            rows["ngrams"] = ngrams
        return Reading(units, windows_of_rows(rows, windows(text)))

    def get_config(self) -> dict[str, Any]:
        config: dict[str, Any] = {}
        if self.vocabulary is not None:
            config.update(characters=self.vocabulary.characters, bigrams=self.vocabulary.bigrams)
        if self.lexicon is not None:
            config.update(_lexicon_config(self.lexicon))
        if self.ngrams is not None:
            config["ngrams"] = self.ngrams.get_config()
        return {**config, "types": True} if self.types else config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates a reader from the result of `get_config`."""
        ngrams = CharacterNGrams.from_config(config["ngrams"]) if "ngrams" in config else None
        lists: list[Any] = [config.get(name) for name in ("characters", "bigrams")]
        if lists == [None, None] and ngrams is not None:
            vocabulary = None
        elif all(isinstance(items, list) and all(isinstance(item, str) for item in items) for items in lists):
            vocabulary = Vocabulary(*lists)
        else:
            raise ValueError(f"needs lists of strings, characters and bigrams. Received: {str(config)[:80]}")
        own = _lexicon(config) if "words" in config else None
        lexicon = own if own is None or "others" not in config else StandardLexicon(own, _lexicon(config["others"]))
        return cls(vocabulary, lexicon, ngrams, config.get("types", False) is True)


def _units(text: str) -> np.ndarray:
    """The units of a text, `(characters, 2)`."""
    starts = np.arange(len(text))
    return np.stack([starts, starts + 1], axis=1)


def _lexicon_config(lexicon: AnyLexicon) -> dict[str, Any]:
    if isinstance(lexicon, StandardLexicon):
        return {**_lexicon_config(lexicon.own), "others": _lexicon_config(lexicon.others)}
    return {"words": lexicon.words, "strings": lexicon.strings}


def _lexicon(config: Any) -> Lexicon:
    counts: list[Any] = [config.get(name) if isinstance(config, dict) else None for name in ("words", "strings")]
    words, strings = counts
    are_counts = all(isinstance(c, dict) and all(type(n) is int for n in c.values()) for c in counts)
    if not are_counts or not all(0 < count <= strings.get(word, 0) for word, count in words.items()):
        raise ValueError(f"needs words and strings with their counts. Received: {str(counts)[:80]}")
    return Lexicon(words, strings)

"""Reads a text character by character, for models trained from scratch."""

from itertools import groupby
from typing import Any, Self

import numpy as np

from kcrf.readers.code_points import code_points, types_of_characters
from kcrf.readers.lexicon import Lexicon, StandardLexicon, cross_fitted
from kcrf.readers.ngrams import LEXICON_COLUMNS, CharacterNGrams
from kcrf.readers.units import Reading, Window, with_copies
from kcrf.readers.vocabulary import Vocabulary
from kcrf.readers.whole import SEPARATOR, cut_pair, whole_reading
from kcrf.readers.windows import windows


class CharacterReader:
    """Reads texts whose units are characters, with inputs for characters, bigrams, and the words around a character.

    Args:
        vocabulary: A `kcrf.readers.Vocabulary` for the inputs "characters" and "bigrams", or None for a linear model,
            which reads only n-grams.
        lexicon: A `kcrf.readers.Lexicon` or `StandardLexicon` for the input "words" and for the n-grams. Defaults to
            None: no such input.
        ngrams: `kcrf.readers.CharacterNGrams` for the input "ngrams". Defaults to None: no such input.
        types: Whether there is an input "types", the type of each character. Defaults to False.
        vectors: `kcrf.readers.WordVectors` for the input "vectors". Defaults to None: no such input.

    Raises:
        ValueError: The n-grams need a lexicon that is missing.

    >>> reading = CharacterReader(Vocabulary.of(["天大"], min_bigrams=1)).read(["天大"])[0]
    >>> reading.units.tolist(), reading.windows[0].inputs
    ([[0, 1], [1, 2]], {'characters': [2, 3], 'bigrams': [2, 3]})
    """

    def __init__(self, vocabulary, lexicon=None, ngrams=None, types=False, vectors=None):
        columns = lexicon.columns if lexicon is not None else ()
        if ngrams is not None and (missing := (ngrams.used & LEXICON_COLUMNS).difference(columns)):
            needed = ", ".join(sorted(missing))
            raise ValueError(f"n-grams with the columns {needed} need a lexicon that has them. Received: {columns}")
        self.vocabulary, self.lexicon, self.ngrams = vocabulary, lexicon, ngrams
        self.types, self.vectors = types, vectors

    def read(self, texts, tokens=None):
        """A list with the `Reading` of each text; `tokens` is ignored."""
        return self._read(texts, self.lexicon)

    def read_training(self, sentences, copies=None):
        """A list with the `Reading` of each `Sentence` of the training set, followed by those of its augmented copies.

        Each sentence is read with the lexicon of the other sentences. The whole lexicon contains all words of the
        sentence.
        """
        if self.lexicon is None:
            return self.read([sentence.text for sentence in with_copies(sentences, copies)])
        parts = groupby(cross_fitted(self.lexicon, sentences, copies), key=lambda pair: id(pair[1]))
        pairs = (list(part) for _, part in parts)
        return [reading for part in pairs for reading in self._read([s.text for s, _ in part], part[0][1])]

    def with_lexicon(self, lexicon):
        """The reader with another lexicon."""
        return CharacterReader(self.vocabulary, lexicon, self.ngrams, self.types, self.vectors)

    def with_words(self, counts):
        """The reader with additional words in its lexicon, from a mapping from words to counts."""
        return self.with_lexicon(self.lexicon.with_words(counts))

    def with_vectors(self, vectors):
        """The same reader with word vectors."""
        return CharacterReader(self.vocabulary, self.lexicon, self.ngrams, self.types, vectors)

    def grown(self, sentences, min_bigrams):
        """The reader with the vocabulary of more sentences, whose entries have the next numbers."""
        vocabulary = self.vocabulary.grown([sentence.text for sentence in sentences], min_bigrams)
        return CharacterReader(vocabulary, self.lexicon, self.ngrams, self.types, self.vectors)

    def read_texts(self, texts, max_length):
        """A list with the `Reading` of each whole text. The texts of a pair are joined with a line end.

        Args:
            texts: List of pairs `(text, text_b)`; `text_b` is None for a single text.
            max_length: The maximum number of characters. Longer texts are truncated; in a pair the longer text first.
        """
        joined = [a[:max_length] if b is None else SEPARATOR.join(cut_pair(a, b, max_length - 1)) for a, b in texts]
        return [whole_reading(self._rows(text, _units(text))) for text in joined]

    def _read(self, texts, lexicon):
        """A list with the `Reading` of each text with a lexicon."""
        ngrams = self.ngrams.encode(texts, lexicon) if self.ngrams and texts else [None] * len(texts)
        return [self._read_one(*pair, lexicon) for pair in zip(texts, ngrams, strict=True)]

    def _rows(self, text, units, lexicon=None):
        rows = {}
        if self.vocabulary is not None:
            rows.update(zip(("characters", "bigrams"), self.vocabulary.encode(text), strict=True))
            if lexicon is not None:
                rows["words"] = lexicon.encode(text)
        if self.types:
            rows["types"] = types_of_characters(code_points(text))
        if self.vectors is not None:
            rows["vectors"] = self.vectors.encode(text, units)
        return rows

    def _read_one(self, text, ngrams, lexicon):
        units = _units(text)
        rows = self._rows(text, units, lexicon)
        if ngrams is not None:
            rows["ngrams"] = ngrams
        parts = [
            Window(
                {name: values[start:end] for name, values in rows.items()}, np.arange(end - start), start, (keep, stop)
            )
            for start, end, keep, stop in windows(text)
        ]
        return Reading(units, parts)

    def get_config(self):
        """A dict of plain values from which `from_config` creates the same reader."""
        config = {}
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
        lists = [config.get(name) for name in ("characters", "bigrams")]
        if lists == [None, None] and ngrams is not None:
            vocabulary = None
        elif all(isinstance(items, list) and all(isinstance(item, str) for item in items) for items in lists):
            vocabulary = Vocabulary(*lists)
        else:
            raise ValueError(f"needs lists of strings, characters and bigrams. Received: {str(config)[:80]}")
        lexicon = _lexicon(config["words"], config.get("strings")) if "words" in config else None
        if lexicon is not None and "others" in config:
            others = config["others"] if isinstance(config["others"], dict) else {}
            lexicon = StandardLexicon(lexicon, _lexicon(others.get("words"), others.get("strings")))
        return cls(vocabulary, lexicon, ngrams, config.get("types", False) is True)


def _units(text):
    """The units of a text, `(characters, 2)`."""
    starts = np.arange(len(text))
    return np.stack([starts, starts + 1], axis=1)


def _lexicon_config(lexicon):
    """A dict of the words of a lexicon; those of other standards under "others"."""
    if isinstance(lexicon, StandardLexicon):
        return {**_lexicon_config(lexicon.own), "others": _lexicon_config(lexicon.others)}
    return {"words": lexicon.words, "strings": lexicon.strings}


def _lexicon(words, strings):
    counts = [words, strings]
    if not all(isinstance(c, dict) and all(type(n) is int for n in c.values()) for c in counts) or not all(
        0 < count <= strings.get(word, 0) for word, count in words.items()
    ):
        raise ValueError(f"needs words and strings with their counts. Received: {str(counts)[:80]}")
    return Lexicon(words, strings)

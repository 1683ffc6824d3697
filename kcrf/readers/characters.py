"""Reads a text character by character, for models trained from scratch."""

import numpy as np

from kcrf.readers.lexicon import Lexicon, cross_fitted
from kcrf.readers.units import Reading, Window, with_copies
from kcrf.readers.vocabulary import Vocabulary
from kcrf.readers.whole import SEPARATOR, cut_pair, whole_reading
from kcrf.readers.windows import windows

__all__ = ["CharacterReader"]


class CharacterReader:
    """Every character is a unit. Its inputs: its number, that of its pair with the next one, words around it.

    Args:
        vocabulary: A `kcrf.readers.Vocabulary`, which numbers characters and pairs.
        lexicon: A `kcrf.readers.Lexicon` for the input "words". Defaults to None: no such input.

    Attributes:
        vectors: `kcrf.readers.WordVectors` for the input "vectors", or None, the default, for no such input.

    >>> reading = CharacterReader(Vocabulary.of(["天大"], min_bigrams=1)).read(["天大"])[0]
    >>> reading.units.tolist(), reading.windows[0].inputs
    ([[0, 1], [1, 2]], {'characters': [2, 3], 'bigrams': [2, 3]})
    """

    def __init__(self, vocabulary, lexicon=None):
        self.vocabulary, self.lexicon, self.vectors = vocabulary, lexicon, None

    def read(self, texts, tokens=None):
        """A list with the `Reading` of each text; `tokens` are not looked at."""
        return [self._read_one(text, self.lexicon) for text in texts]

    def read_training(self, sentences, copies=None):
        """A list with the `Reading` of each `Sentence` of the training part, followed by those of its altered copies.

        Each is read with the lexicon of the other sentences: with its own, all of its words would be known.
        """
        if self.lexicon is None:
            return self.read([sentence.text for sentence in with_copies(sentences, copies)])
        pairs = cross_fitted(self.lexicon, sentences, copies)
        return [self._read_one(sentence.text, others) for sentence, others in pairs]

    def with_words(self, counts):
        """The reader with more words in its lexicon, a mapping from words to how often they count."""
        reader = CharacterReader(self.vocabulary, self.lexicon.with_words(counts))
        reader.vectors = self.vectors
        return reader

    def read_texts(self, texts, max_length):
        """A list with the `Reading` of each text as a whole, of pairs with a line end between the two.

        Args:
            texts: List of pairs `(text, text_b)`; `text_b` is None for a single text.
            max_length: The most characters. A text with more is cut off, of a pair the longer.
        """
        joined = [a[:max_length] if b is None else SEPARATOR.join(cut_pair(a, b, max_length - 1)) for a, b in texts]
        return [whole_reading(self._rows(text, _units(text))) for text in joined]

    def _rows(self, text, units, lexicon=None):
        rows = dict(zip(("characters", "bigrams"), self.vocabulary.encode(text), strict=True))
        if lexicon is not None:
            rows["words"] = lexicon.encode(text)
        if self.vectors is not None:
            rows["vectors"] = self.vectors.encode(text, units)
        return rows

    def _read_one(self, text, lexicon):
        units = _units(text)
        rows = self._rows(text, units, lexicon)
        found = [
            Window({name: row[start:end] for name, row in rows.items()}, np.arange(end - start), start, (keep, stop))
            for start, end, keep, stop in windows(text)
        ]
        return Reading(units, found)

    def get_config(self):
        """A dict of plain values from which `from_config` makes the same reader."""
        config = {"characters": self.vocabulary.characters, "bigrams": self.vocabulary.bigrams}
        if self.lexicon is not None:
            config.update(words=self.lexicon.words, strings=self.lexicon.strings)
        return config

    @classmethod
    def from_config(cls, config):
        """The reader that `get_config` described."""
        lists = [config.get(name) for name in ("characters", "bigrams")]
        if not all(isinstance(items, list) and all(isinstance(item, str) for item in items) for items in lists):
            raise ValueError(f"needs lists of strings, characters and bigrams. Received: {str(config)[:80]}")
        return cls(Vocabulary(*lists), _lexicon(config["words"], config.get("strings")) if "words" in config else None)


def _units(text):
    """The units of a text, `(characters, 2)`."""
    starts = np.arange(len(text))
    return np.stack([starts, starts + 1], axis=1)


def _lexicon(words, strings):
    counts = [words, strings]
    if not all(isinstance(c, dict) and all(type(n) is int for n in c.values()) for c in counts) or not all(
        0 < count <= strings.get(word, 0) for word, count in words.items()
    ):
        raise ValueError(f"needs words and strings with their counts. Received: {str(counts)[:80]}")
    return Lexicon(words, strings)

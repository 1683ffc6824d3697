"""Reads a text character by character, for models trained from scratch."""

import json

import numpy as np

from kcrf.files import read_json
from kcrf.readers.lexicon import Lexicon, cross_fitted
from kcrf.readers.units import Reading, Window
from kcrf.readers.vocabulary import Vocabulary
from kcrf.readers.windows import windows

__all__ = ["BERT_CONFIG", "CharacterReader"]

BERT_CONFIG, _VOCAB, _VOCABULARY = "bert_config.json", "vocab.txt", "vocabulary.json"


class CharacterReader:
    """Every character is a unit, read as its number, that of the pair it forms with the next, and the words around it.

    Args:
        vocabulary: A `kcrf.readers.Vocabulary`.
        lexicon: A `kcrf.readers.Lexicon` for the input "words", or None for none. Defaults to None.

    >>> reading = CharacterReader(Vocabulary.of(["天大"], min_bigrams=1)).read(["天大"])[0]
    >>> reading.units.tolist(), reading.windows[0].inputs
    ([[0, 1], [1, 2]], {'characters': [2, 3], 'bigrams': [2, 3]})
    """

    def __init__(self, vocabulary, lexicon=None):
        self.vocabulary, self.lexicon = vocabulary, lexicon

    def read(self, texts):
        """A `Reading` of each text."""
        return [self._reading(text, self.lexicon) for text in texts]

    def read_training(self, sentences):
        """A `Reading` of each `Sentence` of the text that the lexicon was counted in: with the words of the others."""
        if self.lexicon is None:
            return self.read([sentence.text for sentence in sentences])
        return [self._reading(sentence.text, others) for sentence, others in cross_fitted(self.lexicon, sentences)]

    def _reading(self, text, lexicon):
        rows = dict(zip(("characters", "bigrams"), self.vocabulary.encode(text), strict=True))
        if lexicon is not None:
            rows["words"] = lexicon.encode(text)
        found = [
            Window({name: row[start:end] for name, row in rows.items()}, np.arange(end - start), start, (keep, stop))
            for start, end, keep, stop in windows(text)
        ]
        places = np.arange(len(text))
        return Reading(np.stack([places, places + 1], axis=1), found)

    def save(self, write):
        """Hands the files from which `load` makes the reader to `write(name, text)`."""
        content = {"characters": self.vocabulary.characters, "bigrams": self.vocabulary.bigrams}
        if self.lexicon is not None:
            content["words"], content["strings"] = self.lexicon.words, self.lexicon.strings
        write(_VOCABULARY, json.dumps(content, ensure_ascii=False, indent=1))

    @classmethod
    def load(cls, folder):
        """The reader of a run folder."""
        path = folder.existing(_VOCABULARY)
        content = read_json(path)
        lists = [content.get(name) for name in ("characters", "bigrams")]
        if not all(isinstance(items, list) and all(isinstance(item, str) for item in items) for items in lists):
            raise ValueError(f"{path}: needs lists of strings, characters and bigrams. Received: {str(content)[:80]}")
        return cls(Vocabulary(*lists), _lexicon(path, content) if "words" in content else None)


def _lexicon(path, content):
    """The `Lexicon` in the content of a vocabulary file."""
    words, strings = content["words"], content.get("strings")
    counts = [words, strings]
    if not all(isinstance(c, dict) and all(type(n) is int for n in c.values()) for c in counts) or not all(
        0 < count <= strings.get(word, 0) for word, count in words.items()
    ):
        raise ValueError(f"{path}: needs words and strings with their counts. Received: {str(counts)[:80]}")
    return Lexicon(words, strings)

"""Reads the sentences of several segmentation standards, and pads their tags. Needs NumPy only."""

from collections.abc import Mapping
from itertools import chain
from typing import Any, NamedTuple

from kcrf.corpora.sentences import for_each_standard


class TagsOfStandard(NamedTuple):
    """The target of a window for a model with an output for each segmentation standard.

    Attributes:
        tags: A list of ints, -1 for unknown tags.
        standard: The standard that the tags follow. Those of the other standards are unknown.
        standards: All standards.
    """

    tags: list
    standard: str
    standards: tuple

    def by_standard(self):
        """The tags for each standard, a dict of lists; an empty list stands for unknown tags."""
        return {name: self.tags if name == self.standard else [] for name in self.standards}


class StandardsReader:
    """Readers that differ in their lexicons: the words of one segmentation standard are not those of another.

    Args:
        readers: A dict from standards to `kcrf.readers.CharacterReader`s.
    """

    def __init__(self, readers: Mapping[str, Any]):
        self.readers = dict(readers)

    @property
    def first(self):
        """The first of the readers. All of them make inputs of the same shapes."""
        return next(iter(self.readers.values()))

    @property
    def vectors(self):
        """The word vectors of all readers, or None."""
        return self.first.vectors

    def read(self, texts, tokens=None):
        """As the first reader: the units of a text are those of every standard."""
        return self.first.read(texts, tokens)

    def read_training(self, sentences, copies=None):
        """The `Reading` of each `Sentence` by the reader of its standard, followed by those of its augmented copies."""
        copies = copies or [()] * len(sentences)

        def read(standard, numbers):
            chosen, altered = ([items[number] for number in numbers] for items in (sentences, copies))
            readings = iter(self.readers[standard].read_training(chosen, altered))
            return [[next(readings) for _ in range(1 + len(row))] for row in altered]

        return list(chain.from_iterable(for_each_standard(sentences, read)))

    def read_texts(self, texts, max_length):
        """As the first reader."""
        return self.first.read_texts(texts, max_length)

    def with_vectors(self, vectors):
        """The same readers with word vectors."""
        return StandardsReader({name: reader.with_vectors(vectors) for name, reader in self.readers.items()})

    def get_config(self):
        """A dict of plain values from which `from_config` makes the same readers: the lexicons by their standards."""
        configs = {name: reader.get_config() for name, reader in self.readers.items()}
        lexicons = {
            name: {key: config.pop(key) for key in ("words", "strings", "others") if key in config}
            for name, config in configs.items()
        }
        return {**next(iter(configs.values())), "standards": lexicons}

    @classmethod
    def from_config(cls, config: dict[str, Any], make_reader: Any) -> "StandardsReader":
        """The readers that `get_config` described, each made by `make_reader` from a dict."""
        lexicons = config.get("standards")
        if not isinstance(lexicons, dict) or not all(isinstance(lexicon, dict) for lexicon in lexicons.values()):
            raise ValueError(f"needs standards with their words. Received: {str(lexicons)[:80]}")
        shared = {name: value for name, value in config.items() if name != "standards"}
        return cls({name: make_reader({**shared, **lexicon}) for name, lexicon in lexicons.items()})


def reader_of_standard(reader, standard):
    """The reader for the texts of one standard; a reader without a lexicon is that of every standard."""
    return reader.readers[standard] if isinstance(reader, StandardsReader) else reader

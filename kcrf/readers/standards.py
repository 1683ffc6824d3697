"""Reads the sentences of several segmentation standards, and pads their tags. Needs NumPy only."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from kcrf.corpora import Sentence
from kcrf.corpora.sentences import for_each_group
from kcrf.readers.units import Copies, Reader, Reading, Tokens
from kcrf.readers.vectors import WordVectors


class TagsOfStandard(NamedTuple):
    """The target of a window for a model with an output for each segmentation standard."""

    tags: list[int]  # -1 for unknown tags
    standard: str
    standards: tuple[str, ...]

    def by_standard(self) -> dict[str, list[int]]:
        """The tags for each standard; an empty list stands for unknown tags."""
        return {name: self.tags if name == self.standard else [] for name in self.standards}


class StandardsReader(Reader):
    """Readers that differ in their lexicons: each segmentation standard has its own words."""

    def __init__(self, readers: Mapping[str, Any]) -> None:
        self.readers = dict(readers)

    @property
    def first(self) -> Any:
        """The first of the readers. All of them make inputs of the same shapes."""
        return next(iter(self.readers.values()))

    @property
    def vectors(self) -> WordVectors | None:  # type: ignore[override]
        return self.first.vectors

    def read(self, texts: Sequence[str], tokens: Tokens = None) -> list[Reading]:
        """As the first reader: all standards have the same units."""
        return self.first.read(texts, tokens)

    def read_training(self, sentences: Sequence[Sentence], copies: Copies = None) -> list[Reading]:
        """As `Reader.read_training`, each sentence by the reader of its standard."""

        def read(standard: Any, chosen: list[Sentence], altered: list[Any]) -> list[list[Reading]]:
            readings = iter(self.readers[standard].read_training(chosen, altered))
            return [[next(readings) for _ in range(1 + len(row))] for row in altered]

        standards, own_copies = [sentence.standard for sentence in sentences], copies or [()] * len(sentences)
        return list(chain.from_iterable(for_each_group(standards, read, sentences, own_copies)))

    def with_vectors(self, vectors: WordVectors | None) -> "StandardsReader":
        return StandardsReader({name: reader.with_vectors(vectors) for name, reader in self.readers.items()})

    def get_config(self) -> dict[str, Any]:
        configs = {name: reader.get_config() for name, reader in self.readers.items()}
        lexicons = {
            name: {key: config.pop(key) for key in ("words", "strings", "others") if key in config}
            for name, config in configs.items()
        }
        return {**next(iter(configs.values())), "standards": lexicons}

    @classmethod
    def from_config(cls, config: dict[str, Any], make_reader: Callable[[dict[str, Any]], Reader]) -> "StandardsReader":
        """The readers that `get_config` described, each made by `make_reader` from a dict."""
        lexicons = config.get("standards")
        if not isinstance(lexicons, dict) or not all(isinstance(lexicon, dict) for lexicon in lexicons.values()):
            raise ValueError(f"needs standards with their words. Received: {str(lexicons)[:80]}")
        shared = {name: value for name, value in config.items() if name != "standards"}
        return cls({name: make_reader({**shared, **lexicon}) for name, lexicon in lexicons.items()})


def reader_of_standard(reader: Any, standard: Any) -> Any:
    """The reader for the texts of one standard. A reader without a lexicon reads the texts of every standard."""
    return reader.readers[standard] if isinstance(reader, StandardsReader) else reader

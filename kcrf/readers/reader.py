"""The protocol of readers, which convert texts to the inputs of a model. Needs NumPy only."""

from collections.abc import Sequence
from typing import Any, Protocol, Self

from kcrf.corpora import Sentence
from kcrf.readers.units import Reading
from kcrf.readers.vectors import WordVectors

Spans = Sequence[tuple[int, int]]


class Reader(Protocol):
    """Splits texts into units and windows, and computes the inputs of a model for each window.

    Attributes:
        vectors: The word vectors of the input "vectors", or None: there is no such input.
    """

    @property
    def vectors(self) -> WordVectors | None: ...

    def read(self, texts: Sequence[str], tokens: Sequence[Spans] | None = None) -> list[Reading]:
        """The `Reading` of each text. `tokens` has the `(start, end)` of its tokens, for readers of tokens."""

    def read_training(
        self, sentences: Sequence[Sentence], copies: Sequence[Sequence[Sentence]] | None = None
    ) -> list[Reading]:
        """The `Reading` of each sentence of the training set, followed by those of its augmented copies."""

    def read_texts(self, texts: Sequence[tuple[str, str | None]], max_length: int) -> list[Reading]:
        """The `Reading` of each text, or pair of texts, in one window of at most `max_length` positions."""

    def with_vectors(self, vectors: WordVectors | None) -> Self:
        """The same reader with word vectors as an input."""

    def get_config(self) -> dict[str, Any]:
        """A dict of plain values from which `from_config` of the class creates the reader, without word vectors."""

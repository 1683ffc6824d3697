"""Sentences with entities."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Sentence", "entity_types"]


@dataclass(frozen=True)
class Sentence:
    """A text with its entities.

    Attributes:
        text: A string.
        spans: A list of `(start, end, label)`, one for each entity: half-open, in characters of the text, in order,
            without overlaps.
        tokens: A list of `(start, end)`, one for each token of the file, likewise. Defaults to an empty list.
        unknown: A list of `(start, end)`, likewise: the text whose labels are not known. Training sums over the tags
            there, and predictions there are not scored. No span is in it. Defaults to an empty list.

    Raises:
        ValueError: A span, token or unknown part is empty, leaves the text or begins before the one before it ends.

    >>> sentence = Sentence("李雷住在上海", [(0, 2, "PER"), (4, 6, "LOC")])
    >>> [sentence.text[start:end] for start, end, _ in sentence.spans]
    ['李雷', '上海']
    """

    text: str
    spans: list
    tokens: list = field(default_factory=list)
    unknown: list = field(default_factory=list, repr=False)

    def __post_init__(self):
        for name in ("spans", "tokens", "unknown"):
            last = 0
            for start, end, *_ in getattr(self, name):
                if not last <= start < end <= len(self.text):
                    raise ValueError(
                        f"A sentence needs `{name}` in order, apart and within its {len(self.text)} characters. "
                        f"Received: ({start}, {end}) after one that ends at {last}"
                    )
                last = end

    def scored(self, predicted: Iterable[Any]) -> list[Any]:
        """The predicted spans that can be scored: those in known text, and those that are in `spans`.

        Args:
            predicted: Iterable of `(start, end, label)`, or of longer tuples that begin so.

        >>> sentence = Sentence("Kim saw Ada", [(0, 3, "PER")], unknown=[(8, 11)])
        >>> sentence.scored([(0, 3, "LOC"), (8, 11, "PER")])
        [(0, 3, 'LOC')]
        """
        if not self.unknown:
            return list(predicted)
        gold = set(self.spans)
        return [span for span in predicted if tuple(span[:3]) in gold or not self._touches_unknown(span)]

    def _touches_unknown(self, span):
        return any(start < span[1] and span[0] < end for start, end in self.unknown)


def entity_types(sentences: Iterable[Sentence]) -> tuple[str, ...]:
    """The labels that occur in sentences: a sorted tuple, as `kcrf.tags.bio` takes it.

    >>> entity_types([Sentence("李雷住在上海", [(0, 2, "PER"), (4, 6, "LOC")])])
    ('LOC', 'PER')
    """
    return tuple(sorted({label for sentence in sentences for _, _, label in sentence.spans}))

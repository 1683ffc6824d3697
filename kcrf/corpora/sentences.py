"""Sentences with entities."""

from collections.abc import Iterable
from dataclasses import dataclass, field

__all__ = ["Sentence", "entity_types"]


@dataclass(frozen=True)
class Sentence:
    """A text with its entities.

    Attributes:
        text: A string.
        spans: A list of `(start, end, label)`, one for each entity: half-open, in characters of the text, in order,
            without overlaps.
        tokens: A list of `(start, end)`, one for each token of the file, likewise. Defaults to an empty list.

    Raises:
        ValueError: A span or a token is empty, leaves the text or begins before the end of the one before it.

    >>> sentence = Sentence("李雷住在上海", [(0, 2, "PER"), (4, 6, "LOC")])
    >>> [sentence.text[start:end] for start, end, _ in sentence.spans]
    ['李雷', '上海']
    """

    text: str
    spans: list
    tokens: list = field(default_factory=list)

    def __post_init__(self):
        for name in ("spans", "tokens"):
            last = 0
            for start, end, *_ in getattr(self, name):
                if not last <= start < end <= len(self.text):
                    raise ValueError(
                        f"A sentence needs `{name}` in order, apart and within its {len(self.text)} characters. "
                        f"Received: ({start}, {end}) after one that ends at {last}"
                    )
                last = end


def entity_types(sentences: Iterable[Sentence]) -> tuple[str, ...]:
    """The labels that occur in sentences: a sorted tuple, as `kcrf.tags.bio` takes it.

    >>> entity_types([Sentence("李雷住在上海", [(0, 2, "PER"), (4, 6, "LOC")])])
    ('LOC', 'PER')
    """
    return tuple(sorted({label for sentence in sentences for _, _, label in sentence.spans}))

"""`Sentence`: a text with its words, with its entities, or with the classes of its tokens."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Sentence:
    """A text with its entities, words, or tokens with their classes.

    Attributes:
        text: A string.
        spans: A sorted list of `(start, end, label)` for the entities, or for the tokens with a known class: half-open,
            in characters of the text, without overlaps. `(start, end)` for words.
        tokens: A sorted list of `(start, end)` for the tokens, half-open, in characters. Defaults to an empty list.
        unknown: A sorted list of `(start, end)` for the text whose labels are unknown. Training marginalizes the tags
            there, and predictions there are not scored. It contains no span. Defaults to an empty list.
        standard: The segmentation standard of the words, where a model learns several. Defaults to None: there is one.

    Raises:
        ValueError: A span, token or unknown part is empty, is not in the text, or overlaps another one.

    >>> sentence = Sentence("李雷住在上海", [(0, 2, "PER"), (4, 6, "LOC")])
    >>> [sentence.text[start:end] for start, end, _ in sentence.spans]
    ['李雷', '上海']
    """

    text: str
    spans: list
    tokens: list = field(default_factory=list)
    unknown: list = field(default_factory=list, repr=False)
    standard: str | None = field(default=None, repr=False)

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
        """The predicted spans that can be scored: those that do not touch unknown text, and those in `spans`.

        Args:
            predicted: Iterable of `(start, end, label)`, or of longer tuples with these first items.

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
    """The labels that occur in sentences, a sorted tuple for `kcrf.tags.bio`.

    >>> entity_types([Sentence("李雷住在上海", [(0, 2, "PER"), (4, 6, "LOC")])])
    ('LOC', 'PER')
    """
    return tuple(sorted({label for sentence in sentences for _, _, label in sentence.spans}))


def for_each_standard(
    sentences: Sequence[Sentence], compute: Callable[[str | None, list[int]], Sequence[Any]]
) -> list[Any]:
    """Calls a function once for each segmentation standard, and returns its values in the order of the sentences.

    Args:
        sentences: A list of sentences.
        compute: A function of a standard and the numbers of its sentences. It returns a list with a value for each.

    >>> sentences = [Sentence("天", [(0, 1)], standard="pku"), Sentence("地", [(0, 1)], standard="gsd")]
    >>> for_each_standard(sentences * 2, lambda standard, numbers: [(standard, number) for number in numbers])
    [('pku', 0), ('gsd', 1), ('pku', 2), ('gsd', 3)]
    """
    numbers: dict[str | None, list[int]] = {}
    for number, sentence in enumerate(sentences):
        numbers.setdefault(sentence.standard, []).append(number)
    values: list[Any] = [None] * len(sentences)
    for standard, chosen in numbers.items():
        for number, value in zip(chosen, compute(standard, chosen), strict=True):
            values[number] = value
    return values

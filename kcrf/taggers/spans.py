"""`Span`, the result of all taggers, and `Part`, a text or a stretch of a text as a decoder takes it."""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kcrf.corpora import Sentence
from kcrf.corpora.conll import join_tokens
from kcrf.readers.padding import check_batch_size
from kcrf.taggers.constraints import SpanConstraints

_DIGITS = 6  # of a probability in a dict
_SENTENCE = re.compile(r"\w[。！？]|\w\s.*[.!?]$")  # a token may have spaces, as Vietnamese words do
_TABLES = ("pandas", "polars", "datasets", "pyarrow")  # libraries for tables


@dataclass(frozen=True, order=True, slots=True)
class Span:
    """A word, an entity or a token, with its place in the text.

    Attributes:
        start, end: The span `[start, end)`, in characters of the text, or in tokens if the text was a list of tokens.
        text: The text of the span.
        label: The entity type, or the class of the word or token. Defaults to "": words without classes.
        probability: The posterior probability that exactly this span has this label. Defaults to None: not computed, as
            for the spans of `k_best`, which have one probability together.
    """

    start: int
    end: int
    text: str
    label: str = ""
    probability: float | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """The span as `kcrf.corpora.Sentence` has it: `(start, end, label)`, or `(start, end)` without a label."""
        return (self.start, self.end, self.label) if self.label else (self.start, self.end)

    def as_dict(self) -> dict[str, Any]:
        """The attributes, for JSON. Without a label or a probability, the dict does not have its key."""
        members: dict[str, Any] = {"start": self.start, "end": self.end, "text": self.text}
        if self.label:
            members["label"] = self.label
        if self.probability is not None:
            members["probability"] = round(self.probability, _DIGITS)
        return members


@dataclass(frozen=True)
class Part:
    """A text, a stretch of a text, or a list of tokens joined to a text."""

    text: str
    tokens: list[Any]  # the `(start, end)` of its tokens in characters; empty for a text without tokens
    is_tokens: bool = False  # whether the user gave a list of tokens: the user's spans are in tokens then
    offset: int = 0  # of a stretch in its text
    constraints: SpanConstraints | None = None  # in characters of the part

    @property
    def source(self) -> str | list[str]:
        """The sequence that spans index: the text, or the tokens."""
        return [self.text[start:end] for start, end in self.tokens] if self.is_tokens else self.text

    def __len__(self) -> int:
        """The number of tokens or characters, in which the user counts spans."""
        return len(self.tokens if self.is_tokens else self.text)

    def in_characters(self, spans: Sequence[Any]) -> Sequence[Any]:
        """Converts the spans of the user, `(start, end, label)`, to characters of the text."""
        if not self.is_tokens:
            return spans
        return [(self.tokens[start][0], self.tokens[end - 1][1], label) for start, end, label in spans]

    def as_counted(self, spans: list[Span]) -> list[Span]:
        """Counts spans as the user does: in characters of the whole text, or in tokens, all that a span touches."""
        if self.offset:
            return [Span(s.start + self.offset, s.end + self.offset, s.text, s.label, s.probability) for s in spans]
        if not self.is_tokens:
            return spans
        starts, ends = np.array(self.tokens, int).reshape(-1, 2).T  # (tokens,) each
        firsts = np.searchsorted(ends, [span.start for span in spans], side="right").tolist()
        stops = np.searchsorted(starts, [span.end for span in spans], side="left").tolist()
        return [replace(span, start=first, end=stop) for first, stop, span in zip(firsts, stops, spans, strict=True)]


def part_of(item: Any) -> Part:
    """The `Part` of a string, of a list of tokens, or of a `kcrf.corpora.Sentence`, whose tokens are used.

    >>> part_of(["Kim", "slept"])
    Part(text='Kim slept', tokens=[(0, 3), (4, 9)], is_tokens=True, offset=0, constraints=None)
    """
    if isinstance(item, str):
        return Part(item, [])
    if isinstance(item, Sentence):
        return Part(item.text, item.tokens)
    check_is_one(item)
    if not isinstance(item, Iterable) or isinstance(item, bytes | Mapping | Set):
        raise TypeError(f"needs a string, a list of tokens or a Sentence. Received: {item!r}"[:200])
    tokens = list(item)
    if not all(isinstance(token, str) and token for token in tokens):
        raise ValueError(f"Tokens must be strings, and not empty. Received: {str(tokens)[:80]}")
    if any(map(_SENTENCE.search, tokens)) or tokens and all(len(token.split()) > 1 for token in tokens):
        raise ValueError(f"A list must be tokens of one text; `predict` takes several. Received: {str(tokens)[:60]}")
    return Part(*join_tokens(tokens), is_tokens=True)


def source_of(text: Any, parts: Sequence[Part]) -> str | list[str]:
    """The sequence that the spans of a text index: the text, or its tokens."""
    return text if isinstance(text, str) else parts[0].source


def checked_list(texts: Iterable[Any], method: str, batch_size: int = 1) -> list[Any]:
    """The texts as a list, after a check of the batch size."""
    check_batch_size(batch_size)
    if isinstance(texts, str):
        raise TypeError(f"`texts` must be a list of strings; for one text call `{method}`. Received: {texts[:40]!r}")
    names = getattr(texts, "column_names", getattr(texts, "columns", None)) if _is_table(texts) else None
    if names is not None:
        columns = [str(name) for name in names]
        column = next((name for name in columns if "text" in name.lower()), "text")
        received = f"a {type(texts).__name__} with the columns {', '.join(columns)[:80]}"
        raise TypeError(f"`texts` must be a list of texts, as table[{column!r}] is. Received: {received}")
    if isinstance(texts, Mapping | Set) or not isinstance(texts, Iterable):
        raise TypeError(f"`texts` must be a list of texts. Received: {texts!r}"[:200])
    return list(texts)


def check_is_one(item: Any) -> None:
    """Raises TypeError for a column of texts, or its values, in place of a text."""
    if _is_table(item) or hasattr(item, "ndim"):
        raise TypeError(f"needs one text; `predict` takes a column of texts. Received: a {type(item).__name__}")


def _is_table(value: Any) -> bool:
    """Whether a value is a table or a column of a library for tables, whose items are rows, columns or texts."""
    return type(value).__module__.partition(".")[0] in _TABLES


def one_per_text(spans: Iterable[Any] | None, texts: Sequence[Any]) -> list[Any]:
    """The spans for each text; none if `spans` is None."""
    of_texts = [()] * len(texts) if spans is None else list(spans)
    if len(of_texts) != len(texts):
        raise ValueError(f"`spans` needs a list for each of the {len(texts)} texts. Received: {len(of_texts)}")
    return of_texts

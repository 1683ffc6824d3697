"""The user dictionary of a segmenter, and how a text is split at white space and at forced words. Needs no Keras."""

import re
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from kcrf.readers.lexicon import LENGTHS
from kcrf.taggers.constraints import SpanConstraints, check_spans, latin_runs, overlapping
from kcrf.taggers.spans import Part

_COUNT = 5  # of a word without a count: the lexicon does not distinguish larger counts

Words = Iterable[str] | Mapping[str, int | str | tuple[int | None, str | None] | None]


def words_of_user(words: Words) -> dict[str, tuple[int, str | None]]:
    """The words of a user dictionary, a dict from words to `(count, class)`; the class is None if it is not given.

    >>> words_of_user({"石墨烯": 20, "云计算": None, "南极洲": "ns", "北极": (3, "ns")})
    {'石墨烯': (20, None), '云计算': (5, None), '南极洲': (5, 'ns'), '北极': (3, 'ns')}
    """
    if isinstance(words, str):
        raise TypeError(f"`words` must be strings or a mapping from strings to counts. Received: {words!r}")
    values: dict[Any, Any] = dict(words) if isinstance(words, Mapping) else dict.fromkeys(words)
    checked: dict[str, tuple[int, str | None]] = {}
    for word, value in values.items():
        count, label = value if isinstance(value, tuple | list) and len(value) == 2 else (value, None)
        if isinstance(count, str) and label is None:
            count, label = None, count
        count = _COUNT if count is None else count
        if not isinstance(word, str) or not re.fullmatch(r"\S+", word):
            raise ValueError(f"`words` must be strings without white space. Received: {word!r}")
        if not isinstance(count, int) or count < 1:
            raise ValueError(f"counts of `words` must be positive integers. Received: {word!r}: {count!r}")
        if label is not None and (not isinstance(label, str) or not label):
            raise ValueError(f"classes of `words` must be strings. Received: {word!r}: {label!r}")
        checked[word] = count, label
    return checked


def forced_words(words: Mapping[str, tuple[int, str | None]], classes: Sequence[str]) -> dict[str, str | None]:
    """The words that are always words, a dict to their class or None. Warns about classes that the model lacks."""
    others = sorted({label for _, label in words.values() if label is not None} - {*classes})
    if others and classes:
        warnings.warn(
            f"`words` have {len(others)} classes that the model lacks, such as {others[0]!r}: the model predicts the "
            f"classes of these words. Its classes are {', '.join(classes)}",
            stacklevel=3,
        )
    return {word: label if label in classes else None for word, (_, label) in words.items()}


def reader_with_words(reader: Any, counts: Mapping[str, int]) -> Any:
    """The reader of a model with more words in its lexicon. Warns about words that the lexicon cannot contain."""
    if getattr(reader, "lexicon", None) is None:
        raise ValueError("`words` needs a model with a lexicon, or `force_words=True`. Received: a model without one")
    ignored = [word for word in counts if len(word) not in LENGTHS]
    if ignored:
        warnings.warn(
            f"{len(ignored)} of {len(counts)} `words` change nothing, such as {ignored[0]!r}: the model's lexicon "
            f"has words of {LENGTHS[0]} to {LENGTHS[-1]} characters. `force_words=True` takes words of any length",
            stacklevel=3,
        )
    return reader.with_words(counts)


def matches(text: str, words: Collection[str], lengths: Sequence[int] | None = None) -> list[tuple[int, int]]:
    """The words of a dictionary in a text: from left to right, the longest match at each position.

    >>> matches("南京市长江大桥", {"南京市", "市长", "长江", "长江大桥"})
    [(0, 3), (3, 7)]
    """
    lengths = sorted(set(map(len, words)), reverse=True) if lengths is None else lengths
    spans: list[tuple[int, int]] = []
    start = 0
    while lengths and start < len(text):
        word = next((word for word in (text[start : start + length] for length in lengths) if word in words), "")
        if word:
            spans.append((start, start + len(word)))
        start += len(word) or 1
    return spans


class TextSplitter:
    """Splits texts at white space, and constrains the words of each part."""

    def __init__(self, forced_words: Mapping[str, str | None], keep_latin: bool, classes: tuple[str, ...]) -> None:
        self._forced_words, self._keep_latin, self._classes = dict(forced_words), keep_latin, classes
        self._lengths = sorted(set(map(len, self._forced_words)), reverse=True)

    def split(self, text: str, spans: Iterable[Any] = ()) -> list[Part]:
        """The parts of a text between white space.

        >>> parts = TextSplitter({"天气": None}, True, ()).split("今天 天气好", [(0, 2)])
        >>> [(part.text, part.offset, part.constraints.spans) for part in parts]
        [('今天', 0, [(0, 2)]), ('天气好', 3, [(0, 2)])]
        """
        words = check_spans(spans, text, self._classes, label_is_open=True)
        if any(re.search(r"\s", text[start:end]) for start, end, *_ in words):
            raise ValueError(f"`spans` must be words without white space. Received: {words} in {text!r}")
        return [
            Part(match[0], [], offset=match.start(), constraints=self._constraints(match[0], words, match.start()))
            for match in re.finditer(r"\S+", text)
        ]

    def _constraints(self, part: str, words: Sequence[tuple[Any, ...]], offset: int) -> SpanConstraints:
        """The `SpanConstraints` of a part, with the words that the user provides for the text."""
        given = overlapping(words, offset, offset + len(part))
        inside = [(start - offset, end - offset, *label) for start, end, *label in given]
        forced = []
        for start, end in matches(part, self._forced_words, self._lengths):
            label = self._forced_words[part[start:end]]
            if not overlapping(inside, start, end):
                forced.append((start, end) if label is None else (start, end, label))
        return SpanConstraints(sorted([*inside, *forced]), latin_runs(part) if self._keep_latin else [])

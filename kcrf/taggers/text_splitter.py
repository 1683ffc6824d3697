"""Splits texts at white space, and constrains the words of each part. Needs NumPy only."""

import re

from kcrf.taggers.span_constraints import SpanConstraints, check_spans, latin_runs, matches, overlapping
from kcrf.taggers.text_input import one_per_text


class TextSplitter:
    """Splits texts at white space, and constrains the words of each part.

    Args:
        forced_words: Mapping from strings that are always words to their class or None: from left to right, the longest
            match at each position, unless it overlaps a span that the user provides.
        keep_latin: Whether runs of Latin letters and digits are never split.
        classes: The classes of words; empty for a model without classes.
    """

    def __init__(self, forced_words, keep_latin, classes):
        self._forced_words, self._keep_latin, self._classes = dict(forced_words), keep_latin, classes
        self._lengths = sorted(set(map(len, self._forced_words)), reverse=True)

    def split(self, texts, spans=None):
        """Splits texts.

        Args:
            texts: List of strings.
            spans: For each text its words `(start, end)` or `(start, end, class)` that the user provides. Defaults to
                None: no words.

        Returns:
            `(parts, constraints)`: for each text a list of its parts, which are strings, and one list with the
            `SpanConstraints` of all parts of all texts.

        Raises:
            ValueError: A span is not in its text, has an unknown class, overlaps another or contains white space.

        >>> parts, constraints = TextSplitter({"天气": None}, True, ()).split(["今天 天气好", ""], [[(0, 2)], []])
        >>> parts, [constraint.spans for constraint in constraints]
        ([['今天', '天气好'], []], [[(0, 2)], [(0, 2)]])
        """
        parts_of_texts, constraints = [], []
        for text, spans_of_text in zip(texts, one_per_text(spans, texts), strict=True):
            words = check_spans(spans_of_text, text, self._classes, label_is_open=True)
            if any(re.search(r"\s", text[start:end]) for start, end, *_ in words):
                raise ValueError(f"`spans` must be words without white space. Received: {words} in {text!r}")
            parts = list(re.finditer(r"\S+", text))
            parts_of_texts.append([part.group() for part in parts])
            constraints += [self._constraints(part.group(), _words_inside(words, *part.span())) for part in parts]
        return parts_of_texts, constraints

    def _constraints(self, part, words):
        """The `SpanConstraints` of a part, with the words that the user provides for it."""
        forced = []
        for start, end in matches(part, self._forced_words, self._lengths):
            label = self._forced_words[part[start:end]]
            if not overlapping(words, start, end):
                forced.append((start, end) if label is None else (start, end, label))
        return SpanConstraints(sorted([*words, *forced]), latin_runs(part) if self._keep_latin else [])


def _words_inside(words, start, end):
    """The words of a text that are inside a part of it, counted from its start."""
    return [(first - start, last - start, *label) for first, last, *label in overlapping(words, start, end)]

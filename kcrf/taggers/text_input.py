"""The texts that a tagger receives: strings, lists of tokens, sentences. Needs NumPy only."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kcrf.corpora import Sentence
from kcrf.corpora.conll import join_tokens
from kcrf.readers.padding import check_batch_size


@dataclass(frozen=True)
class TextInput:
    """A text, or a list of tokens joined to a text.

    Attributes:
        text: The text.
        tokens: The `(start, end)` of its tokens in characters, a list. Empty for a text without tokens.
        is_tokens: Whether the input was a list of tokens. Its spans are then in tokens instead of characters.
    """

    text: str
    tokens: list
    is_tokens: bool

    def __len__(self):
        """The number of tokens or characters, in which spans are counted."""
        return len(self.tokens if self.is_tokens else self.text)

    def in_characters(self, spans):
        """Converts the spans of the user, `(start, end, label)`, to characters of the text."""
        if not self.is_tokens:
            return spans
        return [(self.tokens[start][0], self.tokens[end - 1][1], label) for start, end, label in spans]

    def as_counted(self, spans):
        """Converts spans in characters, `(start, end, ...)`, to those of the user: all tokens that a span touches."""
        if not self.is_tokens:
            return spans
        starts, ends = np.array(self.tokens, int).reshape(-1, 2).T  # (tokens,) each
        firsts = np.searchsorted(ends, [span[0] for span in spans], side="right").tolist()
        stops = np.searchsorted(starts, [span[1] for span in spans], side="left").tolist()
        return [(first, stop, *span[2:]) for first, stop, span in zip(firsts, stops, spans, strict=True)]


def as_text_input(item):
    """The `TextInput` of a string, of a list of tokens, or of a `kcrf.corpora.Sentence`, whose tokens are used.

    Raises:
        TypeError: It is none of these.
        ValueError: A token is no string, or empty.

    >>> as_text_input(["Kim", "slept"])
    TextInput(text='Kim slept', tokens=[(0, 3), (4, 9)], is_tokens=True)
    """
    if isinstance(item, str):
        return TextInput(item, [], False)
    if isinstance(item, Sentence):
        return TextInput(item.text, item.tokens, False)
    if not isinstance(item, Iterable) or isinstance(item, bytes):
        raise TypeError(f"needs a string, a list of tokens or a Sentence. Received: {item!r}"[:200])
    tokens = list(item)
    if not all(isinstance(token, str) and token for token in tokens):
        raise ValueError(f"Tokens must be strings, and not empty. Received: {str(tokens)[:80]}")
    return TextInput(*join_tokens(tokens), True)


def checked_strings(texts):
    """The texts, all of them strings."""
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"texts must be strings. Received: {text!r}"[:200])
    return texts


def one_per_text(spans, texts):
    """The spans for each text."""
    spans = [()] * len(texts) if spans is None else list(spans)
    if len(spans) != len(texts):
        raise ValueError(f"`spans` needs a list for each of the {len(texts)} texts. Received: {len(spans)}")
    return spans


def as_list(texts, method):
    """The texts as a list. A string is refused: its characters would each be taken for a text."""
    if isinstance(texts, str):
        raise TypeError(f"`texts` must be a list of strings; for one text call `{method}`. Received: {texts[:40]!r}")
    return list(texts)


def checked_texts(texts, method, batch_size):
    """The texts as a list of strings, once they and the size of batches are checked; `method` is for one text."""
    check_batch_size(batch_size)
    return checked_strings(as_list(texts, method))

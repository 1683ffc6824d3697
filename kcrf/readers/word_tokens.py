"""Splits text into words and punctuation like English CoNLL corpora. Needs NumPy only."""

import re

import numpy as np

from kcrf.corpora.characters import WITHOUT_SPACES

_MARKS = "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0900-\u0963\u0966-\u0dff\u200d\ufe0f"
_IN_WORD = rf"(?:[^\W{WITHOUT_SPACES}]|[{_MARKS}])"
_CLITIC = r"['’](?:s|m|d|re|ve|ll)(?!\w)"
_TITLE = r"(?:Mr|Mrs|Ms|Dr|Prof|Gen|Col|Capt|Lt|Sgt|Sen|Rep|Gov|Rev|St|Jr|Sr|Inc|Corp|Co|Ltd|Bros|No|vs|etc)\."
_TOKEN = re.compile(
    "|".join(
        [
            r"(?:https?://|www\.)\S*[\w/]",
            r"[\w.+-]{1,64}@\w[\w-]*(?:\.\w+)+",  # the limit of RFC 5321, without which long words take long
            rf"[@#]{_IN_WORD}+",
            rf"(?:[A-Za-z]\.){{2,}}(?:-{_IN_WORD}+)*",  # U.S.-led
            r"(?-i:[A-Z])\.(?=[ \t]+\w)",  # J. Smith
            rf"{_TITLE}(?!\w)",
            rf"\d+(?:[.,:/]\d+)+(?:-{_IN_WORD}+)*",
            _CLITIC,
            r"n['’]t(?!\w)",
            rf"{_IN_WORD}+?(?=n['’]t(?!\w))",  # do n't
            rf"{_IN_WORD}+(?:(?!{_CLITIC})[-–'’.&]{_IN_WORD}+)*",  # O'Brien, well-known, AT&T, but not 's
            r"\.{2,}|-{2,}|\S",
        ]
    ),
    re.IGNORECASE,
)


def token_spans(text, splits=""):
    """Splits a text into tokens, which cover the text except for white space.

    Args:
        text: A string.
        splits: Characters that are always a token of their own, even inside a word. Defaults to no characters.

    Returns:
        An integer array `(tokens, 2)`: the start and end of each token, half-open.

    >>> text = "Germany's U.N. team didn't pay $1,000 (O'Brien)."
    >>> [text[start:end] for start, end in token_spans(text)]
    ['Germany', "'s", 'U.N.', 'team', 'did', "n't", 'pay', '$', '1,000', '(', "O'Brien", ')', '.']
    """
    spans = [match.span() for match in _TOKEN.finditer(text)]
    return np.array(split_tokens(text, spans, splits), int).reshape(-1, 2)


def split_tokens(text, spans, splits):
    """Splits tokens before and after each of some characters.

    Args:
        text: A string.
        spans: List of `(start, end)`.
        splits: The characters, a string.

    >>> split_tokens("UN-led", [(0, 6)], "-")
    [(0, 2), (2, 3), (3, 6)]
    """
    if not splits or not any(character in text for character in splits):
        return spans
    parts = re.compile(f"[{re.escape(splits)}]|[^{re.escape(splits)}]+")
    return [part.span() for start, end in spans for part in parts.finditer(text, start, end)]

"""Splits text into words and punctuation like English CoNLL corpora, and describes the spelling of words."""

import re

import numpy as np

from kcrf.corpora.characters import WITHOUT_SPACES
from kcrf.readers.vocabulary import fold_text

AFFIXES = (1, 2, 3, 4)  # lengths of prefixes and suffixes
_LONGEST_RUN = 2  # of a shape
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


def token_spans(text: str, splits: str = "") -> np.ndarray:
    """Splits a text into tokens, which cover the text except for white space.

    >>> text = "Germany's U.N. team didn't pay $1,000 (O'Brien)."
    >>> [text[start:end] for start, end in token_spans(text)]
    ['Germany', "'s", 'U.N.', 'team', 'did', "n't", 'pay', '$', '1,000', '(', "O'Brien", ')', '.']
    """
    spans = [match.span() for match in _TOKEN.finditer(text)]
    return np.array(split_tokens(text, spans, splits), int).reshape(-1, 2)


def split_tokens(text: str, spans: list[tuple[int, int]], splits: str) -> list[tuple[int, int]]:
    """Splits tokens before and after each of some characters.

    >>> split_tokens("UN-led", [(0, 6)], "-")
    [(0, 2), (2, 3), (3, 6)]
    """
    if not splits or not any(character in text for character in splits):
        return spans
    parts = re.compile(f"[{re.escape(splits)}]|[^{re.escape(splits)}]+")
    return [part.span() for start, end in spans for part in parts.finditer(text, start, end)]


def shape_of(word: str) -> str:
    """The shape of a word: X for capitals, x for other letters, d for digits. Runs are shortened to two.

    >>> [shape_of(word) for word in ("Leeds", "NASA", "McCoy", "1,998", "U.S.", "北京")]
    ['Xxx', 'XX', 'XxXxx', 'd,dd', 'X.X.', 'xx']
    """
    kinds = "".join(map(_shape_character, word))
    return "".join(kind for i, kind in enumerate(kinds) if kinds[i - _LONGEST_RUN : i] != kind * _LONGEST_RUN)


def _shape_character(character: str) -> str:
    if character.isdecimal():
        return "d"
    if character.isalpha():
        return "X" if character.isupper() or character.istitle() else "x"
    return character


def word_features(word: str) -> list[str]:
    """The features of a word as strings: its shape, prefixes and suffixes."""
    folded = fold_text(word)
    prefixes = [f"{folded[:length]}-" if len(folded) > length else "" for length in AFFIXES]
    suffixes = [f"-{folded[-length:]}" if len(folded) > length else "" for length in AFFIXES]
    return [f"={shape_of(word)}", *prefixes, *suffixes]

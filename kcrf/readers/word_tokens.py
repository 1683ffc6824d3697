"""Splits text into words and punctuation like English CoNLL corpora, and chooses if a recognizer's units are words."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from kcrf.corpora import Sentence
from kcrf.corpora.lines import WITHOUT_SPACES
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
    """Splits a text into tokens, which cover the text except for white space; also at each of some characters."""
    spans = [match.span() for match in _TOKEN.finditer(text)]
    if any(character in text for character in splits):
        parts = re.compile(f"[{re.escape(splits)}]|[^{re.escape(splits)}]+")
        spans = [part.span() for start, end in spans for part in parts.finditer(text, start, end)]
    return np.array(spans, int).reshape(-1, 2)


def shape_of(word: str) -> str:
    """The shape of a word: X for capitals, x for other letters, d for digits. Runs are shortened to two."""
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


_WORDS_FROM = 2.0  # minimum mean length, in characters, of tokens with letters
_MOST_CUT = 0.1  # maximum fraction of the entities that begin or end inside a word
_SAMPLE = 2000  # sentences
_SPLITS_FROM = 0.001  # fraction of the entities that need a split at a character, so that all texts are split there


def choose_units(sentences: Sequence[Sentence]) -> str:
    """Chooses whether the units of entities are words or characters.

    The units are words if tokens have at least two characters on average, and at most a tenth of the entities begin or
    end inside a token: words for English, characters for Chinese, Japanese and Thai.
    """
    sample = sentences[:: -(-len(sentences) // _SAMPLE)] if sentences else []
    untokenized = [Sentence(sentence.text, []) for sentence in sample]
    has_words = min(_mean_length(sample), _mean_length(untokenized)) >= _WORDS_FROM
    entities = sum(len(sentence.spans) for sentence in sample)
    return "words" if has_words and len(_cut(sample, splits_of(sample))) <= _MOST_CUT * entities else "characters"


def _mean_length(sentences: Sequence[Sentence]) -> float:
    """The mean length of the tokens with letters, or 0 if there are none."""
    tokens = [sentence.text[start:end] for sentence in sentences for start, end in _tokens(sentence)]
    lengths = [len(token) for token in tokens if any(map(str.isalpha, token))]
    return sum(lengths) / len(lengths) if lengths else 0


def splits_of(sentences: Sequence[Sentence]) -> str:
    """Chooses the punctuation at which words are split: next to it, a token has the border of one in 1,000 entities."""
    marks = Counter[str]()
    for sentence, span in _cut(sentences):
        for inner, outer in ((span[0], span[0] - 1), (span[1] - 1, span[1])):
            near = [sentence.text[i] for i in (outer, inner) if 0 <= i < len(sentence.text)]
            marks.update([c for c in near if not c.isalnum() and not c.isspace()][:1])
    least = _SPLITS_FROM * sum(len(sentence.spans) for sentence in sentences)
    return "".join(sorted(mark for mark, count in marks.items() if count > least))


def entities_that_cut_tokens(sentences: Sequence[Sentence], splits: str = "") -> list[str]:
    """The texts of the entities that begin or end inside a token, a list."""
    return [sentence.text[span[0] : span[1]] for sentence, span in _cut(sentences, splits)]


def _tokens(sentence: Sentence, splits: str = "") -> Any:
    return sentence.tokens or token_spans(sentence.text, splits).tolist()


def _cut(sentences: Sequence[Sentence], splits: str = "") -> list[tuple[Sentence, Any]]:
    """`(sentence, span)` of each entity that begins or ends inside a token."""
    cut_entities = []
    for sentence in sentences:
        if sentence.spans:
            tokens = _tokens(sentence, splits)
            starts, ends = {start for start, _ in tokens}, {end for _, end in tokens}
            cut_entities += [(sentence, s) for s in sentence.spans if s[0] not in starts or s[1] not in ends]
    return cut_entities

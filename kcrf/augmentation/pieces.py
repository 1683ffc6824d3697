"""A text as pieces, its words or characters, each with the white space before it."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from kcrf.corpora.conll import join_tokens
from kcrf.readers.word_tokens import token_spans


class Piece(NamedTuple):
    """A word or character of a text, and the white space between the previous one and this one."""

    gap: str
    text: str


def pieces_of(text: str, spans: Any = None) -> tuple[list[Piece], str]:
    """The pieces of a text, and the text after the last piece."""
    spans = token_spans(text).tolist() if spans is None else spans
    ends = [0, *(end for _, end in spans)]
    pieces = [Piece(text[before:start], text[start:end]) for before, (start, end) in zip(ends, spans)]
    return pieces, text[ends[-1] :]


def text_of(pieces: Iterable[Piece], tail: str = "") -> str:
    """The text of pieces, with `tail` after it."""
    return "".join(gap + text for gap, text in pieces) + tail


def with_texts(pieces: Iterable[Piece], texts: Iterable[str]) -> list[Piece]:
    """Pieces with other texts, one for each; the gaps stay where they are."""
    return [Piece(piece.gap, text) for piece, text in zip(pieces, texts, strict=True)]


def apart(pieces: Sequence[Piece], before: Sequence[Piece]) -> list[Piece]:
    """Altered pieces with a space between two pieces that would otherwise run together into one word."""
    contexts_before, separated = {_context(before, i) for i in range(len(before))}, list(pieces)
    for i, piece in enumerate(separated):
        context = _context(separated, i)
        start = sum(map(len, context[:-1]))
        if start and context not in contexts_before and start not in token_spans("".join(context))[:, 0]:
            separated[i] = Piece(" ", piece.text)
    return separated


def _context(pieces: Sequence[Piece], number: int) -> tuple[str, ...]:
    """The texts of up to two pieces before the n-th piece, none of them before a gap, and the text of this piece."""
    first = number
    while first > max(0, number - 2) and not pieces[first].gap:
        first -= 1
    return tuple(piece.text for piece in pieces[first : number + 1])


def spacing(before: str, after: str) -> str:
    """The text to insert between two words that become adjacent: a space, except in Chinese and Japanese."""
    return join_tokens([before, after])[0][len(before) : -len(after)]


def group_words(pieces: Sequence[Piece], is_word: Callable[[str], bool], longest: int) -> list[tuple[int, int]]:
    """Groups adjacent pieces that form a word of a dictionary. The longest match wins."""
    groups, start = [], 0
    while start < len(pieces):
        stop = start + 1
        text = pieces[start].text
        for end in range(start + 1, len(pieces)):
            text += pieces[end].text
            if pieces[end].gap or len(text) > longest:
                break
            if is_word(text):
                stop = end + 1
        groups.append((start, stop))
        start = stop
    return groups


def choose(random: np.random.Generator, count: int, share: float) -> list[int]:
    """Random numbers below `count`, each chosen with probability `share`; at least one if `count` is not 0."""
    drawn = np.flatnonzero(random.random(count) < share).tolist()
    return drawn or ([int(random.integers(count))] if count else [])


def pick(random: np.random.Generator, items: Sequence[Any]) -> Any:
    """A random item."""
    return items[int(random.integers(len(items)))]

"""Converts characters of a whole batch of texts to integers: folded code points, character types. Needs NumPy only."""

import unicodedata
from collections.abc import Callable

import numpy as np

from kcrf.readers.vocabulary import fold

BOUNDARY = "\n"  # before and after every text
TYPES = ("boundary", "space", "sign", "digit", "numeral", "latin", "han", "kana", "letter", "other")
_NUMERALS = frozenset("〇○零一二三四五六七八九十百千万亿兆两几半")
_HAN = (
    (0x2E80, 0x2FDF),
    (0x3005, 0x3007),
    (0x3021, 0x3029),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
_KANA = ((0x3041, 0x30FF), (0x31F0, 0x31FF))
_LATIN = ((0x0, 0x24F), (0x1E00, 0x1EFF))
_CODE_POINTS = 0x110000


def character_type(character: str) -> str:
    """The type of a character, one of `TYPES`. Punctuation and symbols of every script are one type, "sign"."""
    character = fold(character)
    category = unicodedata.category(character)
    if character == BOUNDARY:
        return "boundary"
    if character.isspace():
        return "space"
    if character.isdecimal():
        return "digit"
    if character in _NUMERALS:
        return "numeral"
    if category[0] in "PS":
        return "sign"
    kinds = (("han", _HAN), ("kana", _KANA), ("latin", _LATIN if category[0] in "LM" else ()))
    ranges = ((kind, low, high) for kind, pairs in kinds for low, high in pairs)
    inside = (kind for kind, low, high in ranges if low <= ord(character) <= high)
    return next(inside, "letter" if category[0] in "LM" else "other")


class _TableByCodePoint:
    """A positive number for each code point, computed when the code point first occurs."""

    def __init__(self, number_of: Callable[[str], int], dtype: str) -> None:
        self._number_of, self._numbers = number_of, np.zeros(_CODE_POINTS, dtype)

    def __call__(self, codes: np.ndarray) -> np.ndarray:
        numbers = self._numbers[codes]
        if not numbers.all():
            new = np.unique(codes[numbers == 0])
            self._numbers[new] = [self._number_of(chr(code)) for code in new.tolist()]
            numbers = self._numbers[codes]
        return numbers


_folded = _TableByCodePoint(lambda character: 1 + ord(fold(character)), "uint32")
_types = _TableByCodePoint(lambda character: 1 + TYPES.index(character_type(character)), "uint8")


def code_points(text: str) -> np.ndarray:
    """The code points of a text, `(characters,)` uint32."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


def folded_characters(codes: np.ndarray) -> np.ndarray:
    """A positive number for each code point, equal for characters that differ in width or case, and for all digits."""
    return _folded(codes)


def types_of_characters(codes: np.ndarray) -> np.ndarray:
    """The type of each code point, uint8: 1 plus its index in `TYPES`."""
    return _types(codes)

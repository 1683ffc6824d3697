"""Converts characters of a whole batch of texts to integers: folded code points, character types. Needs NumPy only."""

import unicodedata

import numpy as np

from kcrf.readers.vocabulary import fold
from kcrf.tokenizers.characters import TableByCodePoint

BOUNDARY = "\n"  # before and after every text
TYPES = ("boundary", "space", "sign", "digit", "numeral", "latin", "han", "kana", "letter", "other")
_NUMERALS = frozenset("〇○零一二三四五六七八九十百千万亿兆两几半")
_HAN = (
    *((0x2E80, 0x2FDF), (0x3005, 0x3007), (0x3021, 0x3029), (0x3400, 0x4DBF)),
    *((0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF)),
)
_KANA = ((0x3041, 0x30FF), (0x31F0, 0x31FF))
_LATIN = ((0x0, 0x24F), (0x1E00, 0x1EFF))


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


def code_points(text: str) -> np.ndarray:
    """The code points of a text, `(characters,)` uint32."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


# A positive number for each code point, equal for characters that differ in width or case, and for all digits.
folded_characters = TableByCodePoint(lambda character: 1 + ord(fold(character)), "uint32")
# The type of each code point: 1 plus its index in `TYPES`.
types_of_characters = TableByCodePoint(lambda character: 1 + TYPES.index(character_type(character)), "uint8")

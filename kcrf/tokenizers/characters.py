"""The classes of characters in BERT's tokenizer: parts of words, words of their own, blanks, or dropped."""

import unicodedata

import numpy as np

__all__ = ["CJK_PUNCTUATION", "SPACED", "class_of", "classes_of", "is_cjk_character", "is_control", "is_punctuation"]
__all__ += ["is_space", "lower_with_origins"]

WORD, ALONE, SPACE, DROPPED = range(1, 5)  # the classes; 0 means not looked up yet
START, END = 0x110000, 0x110001  # code points that Unicode does not use stand for the start and the end token
CLASSES = {lower: np.zeros(END + 1, np.uint8) for lower in (False, True)}  # by code point; `lower` drops accents

CJK_RANGES = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)),
    *((0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)
CJK_PUNCTUATION = (
    "＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､\u3000、〃〈〉《》「」『』【】〔〕〖〗〘〙〚〛〜〝〞〟〰〾〿"
    "–—‘’‛“”„‟…‧﹏﹑﹔·！？｡。"
)


def is_space(ch):
    """Whether a character is a blank of any width, or a line end."""
    return ch in " \n\r\t" or unicodedata.category(ch) == "Zs"


def is_punctuation(ch):
    """Whether a character is punctuation. ASCII symbols such as "$" and "+" count too."""
    code = ord(ch)
    in_ascii = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    return in_ascii or unicodedata.category(ch).startswith("P")


def is_cjk_character(ch):
    """Whether a character is Chinese, also in Japanese and Korean text. Kana and hangul are not."""
    return any(first <= ord(ch) <= last for first, last in CJK_RANGES)


def is_control(ch):
    """Whether a character is a control or format character. Line ends are."""
    return unicodedata.category(ch) in ("Cc", "Cf")


def class_of(char, lower=False):
    """The class of a character. With `lower` accents are dropped."""
    if is_punctuation(char) or is_cjk_character(char):
        return ALONE
    if is_space(char) or unicodedata.category(char) in ("Zl", "Zp"):
        return SPACE
    dropped = char in "\0\ufffd" or is_control(char) or (lower and unicodedata.category(char) == "Mn")
    return DROPPED if dropped else WORD


def classes_of(codes, lower):
    """The classes of an array of code points. Each code point is classified once and then looked up."""
    table = CLASSES[bool(lower)]
    table[START:] = ALONE
    classes = table[codes]
    if classes.all():
        return classes
    for code in set(codes[classes == 0].tolist()):
        table[code] = class_of(chr(code), lower)
    return table[codes]


class _Spaced(dict):
    """A table for `str.translate`: puts blanks around characters that are words of their own, and drops others."""

    def __init__(self, lower):
        self._lower = lower

    def __missing__(self, code):
        char = chr(code)
        self[code] = {WORD: char, ALONE: f" {char} ", SPACE: " ", DROPPED: ""}[class_of(char, self._lower)]
        return self[code]


SPACED = {lower: _Spaced(lower) for lower in (False, True)}


def lower_with_origins(text):
    """Lowers a text and splits accents from their letters.

    Returns:
        The new text, and an array with the position in `text` of each of its characters; `None` if all positions are
        unchanged.

    >>> lower_with_origins("\\u00c9T")
    ('e\\u0301t', array([0, 0, 1]))
    """
    plain = text.lower()
    if len(plain) == len(text) and unicodedata.is_normalized("NFD", plain):
        return plain, None
    chars, start = [], 0
    for place, char in enumerate(text):  # `plain` was lower-cased as a whole: a sigma at the end of a word differs
        end = start + len(char.lower())
        chars += [(c, place) for c in unicodedata.normalize("NFD", plain[start:end])]
        start = end
    chars = _marks_in_order(chars)
    return "".join(char for char, _ in chars), np.array([place for _, place in chars], np.int64)


def _marks_in_order(chars):
    """Puts combining marks into Unicode's canonical order, in a list of (character, position)."""
    ordered, marks = [], []
    for item in [*chars, ("\0", 0)]:
        if unicodedata.combining(item[0]):
            marks.append(item)
            continue
        ordered += sorted(marks, key=lambda mark: unicodedata.combining(mark[0]))
        ordered.append(item)
        marks = []
    return ordered[:-1]

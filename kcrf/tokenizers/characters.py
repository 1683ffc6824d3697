"""What characters are to BERT's tokenizer: parts of words, words of their own, blanks, or nothing."""

import unicodedata

import numpy as np

__all__ = ["CJK_PUNCTUATION", "SPACED", "is_cjk_character", "is_control", "is_punctuation", "is_space", "kind_of"]

__all__ += ["kinds_of", "lowered"]

WORD, ALONE, SPACE, DROPPED = range(1, 5)  # the kinds; 0 = not looked up yet
START, END = 0x110000, 0x110001  # behind Unicode: the start and the end token in a row of code points
KINDS = {lower: np.zeros(END + 1, np.uint8) for lower in (False, True)}  # accents are characters, or dropped

CJK_RANGES = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)),
    *((0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)
CJK_PUNCTUATION = (
    "＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､\u3000、〃〈〉《》「」『』【】〔〕〖〗〘〙〚〛〜〝〞〟〰〾〿"
    "–—‘’‛“”„‟…‧﹏﹑﹔·！？｡。"
)


def is_space(ch):
    """Blanks of every width, line ends."""
    return ch in " \n\r\t" or unicodedata.category(ch) == "Zs"


def is_punctuation(ch):
    """Also the ASCII signs that Unicode calls symbols, such as "$" and "+"."""
    code = ord(ch)
    in_ascii = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    return in_ascii or unicodedata.category(ch).startswith("P")


def is_cjk_character(ch):
    """A Chinese character, also as Japanese and Korean use them; no kana, no hangul."""
    return any(first <= ord(ch) <= last for first, last in CJK_RANGES)


def is_control(ch):
    """Control and format characters, line ends among them."""
    return unicodedata.category(ch) in ("Cc", "Cf")


def kind_of(char, lower=False):
    """What a character is to the tokenizer."""
    if is_punctuation(char) or is_cjk_character(char):
        return ALONE
    if is_space(char) or unicodedata.category(char) in ("Zl", "Zp"):
        return SPACE
    dropped = char in "\0\ufffd" or is_control(char) or (lower and unicodedata.category(char) == "Mn")
    return DROPPED if dropped else WORD


def kinds_of(codes, lower):
    """The kinds of code points, looked up in a table that grows with the characters that come."""
    table = KINDS[bool(lower)]
    table[START:] = ALONE
    kinds = table[codes]
    if kinds.all():
        return kinds
    for code in set(codes[kinds == 0].tolist()):
        table[code] = kind_of(chr(code), lower)
    return table[codes]


class _Spaced(dict):
    """For `str.translate`: blanks around characters that stand alone, and nothing for those that are dropped."""

    def __init__(self, lower):
        self._lower = lower

    def __missing__(self, code):
        char = chr(code)
        self[code] = {WORD: char, ALONE: f" {char} ", SPACE: " ", DROPPED: ""}[kind_of(char, self._lower)]
        return self[code]


SPACED = {lower: _Spaced(lower) for lower in (False, True)}


def lowered(text):
    """A text in lower case with its accents apart, and the place in the original of each character (None: the same).

    >>> lowered("\\u00c9T")
    ('e\\u0301t', array([0, 0, 1]))
    """
    plain = text.lower()
    if len(plain) == len(text) and unicodedata.is_normalized("NFD", plain):
        return plain, None
    chars, start = [], 0
    for place, char in enumerate(text):  # lowered as a whole: a final sigma differs from the others
        end = start + len(char.lower())
        chars += [(c, place) for c in unicodedata.normalize("NFD", plain[start:end])]
        start = end
    chars = _marks_in_order(chars)
    return "".join(char for char, _ in chars), np.array([place for _, place in chars], np.int64)


def _marks_in_order(chars):
    """Unicode's canonical order of combining marks, for a list of (character, place)."""
    ordered, marks = [], []
    for item in [*chars, ("\0", 0)]:
        if unicodedata.combining(item[0]):
            marks.append(item)
            continue
        ordered += sorted(marks, key=lambda mark: unicodedata.combining(mark[0]))
        ordered.append(item)
        marks = []
    return ordered[:-1]

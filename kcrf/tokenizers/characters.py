"""The classes of characters in BERT's tokenizer, and the pieces of words."""

import unicodedata
from collections.abc import Callable
from functools import cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from kcrf.extras import needs_extra

WORD, ALONE, SPACE, DROPPED = range(1, 5)  # the classes
START, END = 0x110000, 0x110001  # code points that Unicode does not use stand for the start and the end token

CJK_RANGES = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)),
    *((0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)
CJK_PUNCTUATION = (
    "＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､\u3000、〃〈〉《》「」『』【】〔〕〖〗〘〙〚〛〜〝〞〟〰〾〿"
    "–—‘’‛“”„‟…‧﹏﹑﹔·！？｡。"
)


def is_space(ch):
    """Whether a character is a space of any width, or a line end."""
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


class TableByCodePoint:
    """A positive number for each code point, computed when the code point first occurs."""

    def __init__(self, number_of: Callable[[str], int], dtype: str) -> None:
        self._number_of, self.numbers = number_of, np.zeros(END + 1, dtype)

    def __call__(self, codes: np.ndarray) -> np.ndarray:
        numbers = self.numbers[codes]
        if not numbers.all():
            new = np.unique(codes[numbers == 0])
            self.numbers[new] = [self._number_of(chr(code)) for code in new.tolist()]
            numbers = self.numbers[codes]
        return numbers


class CharacterClasses:
    """The classes of characters; `character_classes` returns one for each pair of settings."""

    def __init__(self, strip_accents: bool, split_chinese: bool) -> None:
        self._strip_accents = strip_accents
        self._split_chinese = split_chinese
        self.of_codes = TableByCodePoint(self.of, "uint8")
        self.of_codes.numbers[START:] = ALONE
        self.spaced = _Spaced(self.of)

    def of(self, char: str) -> int:
        """The class of a character."""
        if is_punctuation(char) or (self._split_chinese and is_cjk_character(char)):
            return ALONE
        if is_space(char) or unicodedata.category(char) in ("Zl", "Zp"):
            return SPACE
        is_dropped = char in "\0\ufffd" or is_control(char) or self.is_dropped_mark(char)
        return DROPPED if is_dropped else WORD

    def is_dropped_mark(self, char: str) -> bool:
        """Whether a character is an accent that is dropped."""
        return self._strip_accents and unicodedata.category(char) == "Mn"


class WordStarts(NamedTuple):
    """The words of an array of characters. `kept` has the positions of the characters that words are made of. `starts`
    has the index in `kept` of the first character of each word. `in_word` tells which of `kept` are parts of words
    rather than words of one character."""

    kept: np.ndarray
    starts: np.ndarray
    in_word: np.ndarray


def word_starts(classes: np.ndarray) -> WordStarts:
    """Splits characters, given by their classes, into words."""
    kept = np.flatnonzero(classes <= ALONE)
    in_word = classes[kept] == WORD
    is_start = np.ones(len(kept) + 1, bool)  # whether a word, or a character that is one, begins here
    is_start[1:-1] = ~(in_word[1:] & in_word[:-1])
    is_start[np.searchsorted(kept, np.flatnonzero(classes == SPACE))] = True
    return WordStarts(kept, np.flatnonzero(is_start[:-1]), in_word)


def words_of(text: str) -> np.ndarray:
    """The words of a text as BERT splits it: `(words, 2)`, the start and end of each."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    kept, starts, _ = word_starts(character_classes().of_codes(codes))
    last = np.append(starts[1:], len(kept))[: len(starts)] - 1
    return np.stack([kept[starts], kept[last] + 1], axis=1).reshape(-1, 2)


@cache
def character_classes(strip_accents: bool = False, split_chinese: bool = True) -> CharacterClasses:
    """The classes of characters under two settings of a tokenizer, see `CharacterClasses`."""
    return CharacterClasses(strip_accents, split_chinese)


class _Spaced(dict):
    """A table for `str.translate`: puts spaces around characters that are words of their own, and drops others."""

    def __init__(self, class_of):
        self._class_of = class_of

    def __missing__(self, code):
        char = chr(code)
        self[code] = {WORD: char, ALONE: f" {char} ", SPACE: " ", DROPPED: ""}[self._class_of(char)]
        return self[code]


def normalize_with_origins(text: str, lower: bool, strip_accents: bool) -> tuple[str, np.ndarray | None]:
    """Lower-cases a text and splits accents from their letters, if asked for; and the old place of each character."""
    plain = text.lower() if lower else text
    is_decomposed = not strip_accents or unicodedata.is_normalized("NFD", plain)
    if len(plain) == len(text) and is_decomposed:
        return plain, None
    chars, start = [], 0
    for place, char in enumerate(text):  # `plain` was lower-cased as a whole: a sigma at the end of a word differs
        end = start + len(char.lower() if lower else char)
        part = plain[start:end]
        chars += [(c, place) for c in (unicodedata.normalize("NFD", part) if strip_accents else part)]
        start = end
    chars = _marks_in_order(chars) if strip_accents else chars
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


CACHED_WORDS = 1 << 18


class WordPieces:
    """Splits words into pieces. The Rust library `tokenizers` does so once for each distinct word."""

    def __init__(self, token_dict, word_maxlen, id_of):
        with needs_extra("transformers", "Tokenizer"):
            from tokenizers.models import WordPiece
        vocabulary = token_dict if "[UNK]" in token_dict else {**token_dict, "[UNK]": 0}  # the library requires it
        self.__setstate__((WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=word_maxlen), id_of))

    def __getstate__(self):
        return self._model, self._id_of

    def __setstate__(self, state):
        self._model, self._id_of = state
        self._split_words = {}
        self.lone_ids = TableByCodePoint(lambda char: self.of([char])[0][1][0] + 1, "int32")  # of characters, plus 1

    def tokens(self, word):
        """The tokens of a word; the word itself where the vocabulary lacks it."""
        try:
            tokens = [piece.value for piece in self._model.tokenize(word)]
        except UnicodeEncodeError:  # half of a surrogate pair, which Rust cannot take and no vocabulary has
            return [word]
        return [word] if len(tokens) == 1 else tokens  # the library gives [UNK] where bert4keras keeps the word

    def of(self, words):
        """For each word its tokens, their ids, and their lengths in characters."""
        get, split = self._split_words.get, self._split
        return [get(word) or split(word) for word in words]

    def _split(self, word):
        if len(self._split_words) >= CACHED_WORDS:
            self._split_words.clear()
        tokens = self.tokens(word)
        lengths = [len(token) - 2 * (place > 0) for place, token in enumerate(tokens)]
        pieces = self._split_words[word] = (tokens, [self._id_of(token) for token in tokens], lengths)
        return pieces

    def tokenize(self, codes, classes):
        """Tokenizes an array of code points, given their classes (see `kcrf.tokenizers.characters`)."""
        kept, starts, in_word = word_starts(classes)
        is_word = in_word[starts]
        text = np.where(classes == WORD, codes, ord(" "))[classes != DROPPED]
        pieces = self.of(text.tobytes().decode("utf-32-le", "surrogatepass").split())
        counts = np.ones(len(starts), np.int64)
        counts[is_word] = [len(tokens) for tokens, _, _ in pieces]
        of_word = np.flatnonzero(np.repeat(is_word, counts))
        lone_ids = np.zeros(len(starts), np.int32)
        lone_ids[~is_word] = self.lone_ids(codes[kept[starts[~is_word]]]) - 1
        ids = np.repeat(lone_ids, counts)
        ids[of_word] = list(chain.from_iterable(numbers for _, numbers, _ in pieces))
        lengths = np.ones(len(ids), np.int64)
        lengths[of_word] = list(chain.from_iterable(sizes for _, _, sizes in pieces))
        ends = np.cumsum(lengths)
        return ids, np.array([kept[ends - lengths], kept[ends - 1] + 1]).T

"""The WordPiece tokenizer of BERT with bert4keras' names and results. Needs no Keras.

Texts are split into words here: on Chinese text, where most words are one character, this is several times faster
than the library's normalizers, whose Unicode tables also differ from Python's.
"""

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, repeat
from os import PathLike
from typing import Any

import numpy as np

from kcrf.tokenizers import characters
from kcrf.tokenizers.characters import END, START, is_cjk_character, is_punctuation
from kcrf.tokenizers.subwords import Encoding, in_original, joined, joined_texts, tidy, truncate
from kcrf.tokenizers.vocabularies import load_vocab, stem

# Methods that a subclass may replace, as with bert4keras: then texts are split by them, character by character.
_OF_A_CHARACTER = ("_is_punctuation", "_is_cjk_character", "_is_space", "_is_control")

BATCH = 256  # texts at once: their arrays fit the processor's cache


class Tokenizer:
    """BERT's tokenizer: a token for each Chinese character and punctuation mark, WordPiece for other words.

    Args:
        token_dict: A dict from token to id, or the path of a vocabulary file.
        do_lower_case: Whether to lower-case the text. Defaults to `False`.
        word_maxlen: Longest word, in characters, that is split into pieces; longer ones are unknown. Defaults to 200.
        token_start: The token before a text, or `None`. Defaults to "[CLS]".
        token_end: The token after a text, or `None`. Defaults to "[SEP]".
        pre_tokenize: A function from a text to words, such as `jieba.lcut`. Words of the vocabulary are not split.
            Defaults to `None`.
        token_translate: A dict of tokens to replace by others. Defaults to `None`.
        strip_accents: Whether to remove accents from letters. Defaults to `None`: as `do_lower_case`.
        tokenize_chinese_chars: Whether each Chinese character is a word of its own. Defaults to `True`.

    >>> tokenizer = Tokenizer({"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "我": 4, "lo": 5, "##ve": 6}, True)
    >>> tokenizer.tokenize("我 Love")
    ['[CLS]', '我', 'lo', '##ve', '[SEP]']
    >>> tokenizer.encode("我 Love")
    ([2, 4, 5, 6, 3], [0, 0, 0, 0, 0])
    """

    def __init__(
        self,
        token_dict: Mapping[str, int] | str | PathLike[str],
        do_lower_case: bool = False,
        word_maxlen: int = 200,
        token_start: str | None = "[CLS]",
        token_end: str | None = "[SEP]",
        pre_tokenize: Callable[[str], Iterable[str]] | None = None,
        token_translate: dict[str, str] | None = None,
        strip_accents: bool | None = None,
        tokenize_chinese_chars: bool = True,
    ) -> None:
        token_dict = token_dict if isinstance(token_dict, Mapping) else load_vocab(token_dict)
        self._do_lower_case = do_lower_case
        self._strip_accents = bool(do_lower_case if strip_accents is None else strip_accents)
        self._split_chinese = bool(tokenize_chinese_chars)
        self._word_maxlen = word_maxlen
        self._pre_tokenize = pre_tokenize
        self._token_translate = token_translate or {}
        self._in_text = {new: [new] for new in self._token_translate.values()}  # what a token may stand for in a text
        for old, new in self._token_translate.items():
            self._in_text[new].append(old)
        self._token_dict = token_dict
        self._token_dict_inv = {number: token for token, number in token_dict.items()}
        self._vocab_size = len(token_dict)
        self._token_pad, self._token_unk, self._token_mask = "[PAD]", "[UNK]", "[MASK]"
        self._token_start, self._token_end = token_start, token_end
        self._token_unk_id: int
        for name in ("pad", "unk", "mask", "start", "end"):
            if getattr(self, f"_token_{name}") in token_dict:
                setattr(self, f"_token_{name}_id", token_dict[getattr(self, f"_token_{name}")])
        self._pieces = characters.WordPieces(token_dict, word_maxlen, self._id_after_translation)
        # The ids as Python ints, looked up here: to convert each from NumPy would be slow.
        self._numbers = np.array(range(max(token_dict.values(), default=0) + 1), object)

    def tokenize(self, text: str, maxlen: int | None = None) -> list[str]:
        """The tokens of a text, with the start and end tokens. Unknown words are not replaced.

        `maxlen` is the maximum number of tokens: the last tokens before the end token are removed.
        """
        tokens = self._tokenize(text)
        if self._token_translate:
            tokens = [self._token_translate.get(token) or token for token in tokens]
        tokens[:0] = [] if self._token_start is None else [self._token_start]
        tokens += [] if self._token_end is None else [self._token_end]
        if maxlen is not None:
            truncate(maxlen, self._truncation_index("right"), tokens)
        return tokens

    def _tokenize(self, text, pre_tokenize=True):
        text = text.lower() if self._do_lower_case else text
        text = unicodedata.normalize("NFD", text) if self._strip_accents else text
        if pre_tokenize and self._pre_tokenize is not None:
            text = "".join(char for char in text if not self._classes.is_dropped_mark(char))
            words = self._pre_tokenize(text)
            return [t for word in words for t in ([word] if word in self._token_dict else self._tokenize(word, False))]
        if self._changes(*_OF_A_CHARACTER):
            words = "".join(map(self._spaced, text)).split()
        else:
            words = text.translate(self._classes.spaced).split()
        if self._changes("_word_piece_tokenize"):
            return [token for word in words for token in self._word_piece_tokenize(word)]
        return [token for tokens, _, _ in self._pieces.of(words) for token in tokens]

    def _word_piece_tokenize(self, word):
        """The pieces of a word, the word itself where the vocabulary lacks them. Subclasses may have their own."""
        return self._pieces.tokens(word)

    def _spaced(self, char):
        """A character as words are split at white space: with spaces around it if it is a word of its own."""
        if self._is_punctuation(char) or (self._split_chinese and self._is_cjk_character(char)):
            return f" {char} "
        if self._is_space(char):
            return " "
        return "" if char in "\0\ufffd" or self._is_control(char) else char

    def _changes(self, *names):
        """Whether a subclass, or this object, has its own version of one of these methods."""
        return any(name in vars(self) or getattr(type(self), name) is not getattr(Tokenizer, name) for name in names)

    @property
    def _classes(self):
        """The classes of characters, which all tokenizers of the same settings share."""
        return characters.character_classes(self._strip_accents, self._split_chinese)

    def _id_after_translation(self, token):
        """The id of a token, or of the token that `token_translate` replaces it by."""
        return self.token_to_id(self._token_translate.get(token) or token)

    @property
    def vocabulary(self) -> Mapping[str, int]:
        """The ids of all tokens, a dict by token."""
        return self._token_dict

    def token_to_id(self, token: str) -> int:
        """The id of a token, or of [UNK] if the vocabulary lacks it."""
        number = self._token_dict.get(token)
        if number is None and not hasattr(self, "_token_unk_id"):
            raise ValueError(f"An unknown token needs {self._token_unk} in `token_dict`. Received: {token!r}")
        return self._token_unk_id if number is None else number

    def tokens_to_ids(self, tokens: Iterable[str]) -> list[int]:
        """The ids of tokens."""
        get, slow = self._token_dict.get, self.token_to_id
        return [slow(token) if number is None else number for token in tokens for number in (get(token),)]

    def id_to_token(self, i: int) -> str:
        """The token with an id."""
        return self._token_dict_inv[i]

    def ids_to_tokens(self, ids: Iterable[int]) -> list[str]:
        """The tokens with these ids."""
        return [self._token_dict_inv[i] for i in ids]

    def encode(
        self,
        first_text: str | list[str],
        second_text: str | list[str] | None = None,
        maxlen: int | None = None,
        pattern: str = "S*E*E",
        truncate_from: str | int = "right",
    ) -> tuple[list[int], list[int]]:
        """Token ids and segment ids of a text or of a pair, two lists of the same length.

        Args:
            first_text: A string, or a list of tokens with their start and end tokens.
            second_text: The same, or None.
            maxlen: Greatest number of ids. Tokens are removed from the longer text, one by one. Defaults to no limit.
            pattern: "S*E*E", or "S*ES*E" to give the second text a start token too. Defaults to "S*E*E".
            truncate_from: Where tokens are removed: "right" (before the end token), "left" (after the start token), or
                an index. Defaults to "right".
        """
        first = self.tokenize(first_text) if isinstance(first_text, str) else list(first_text)
        second = self.tokenize(second_text) if isinstance(second_text, str) else list(second_text or [])
        if maxlen is not None:
            truncate(maxlen + self._shared_start(second, pattern), self._truncation_index(truncate_from), first, second)
        second = second[self._shared_start(second, pattern) :]
        return self.tokens_to_ids(first + second), [0] * len(first) + [1] * len(second)

    def _shared_start(self, second, pattern):
        """1 if the start token of the second text is left out and does not count for `maxlen`, else 0."""
        return int(bool(second and self._token_start) and pattern == "S*E*E")

    def _truncation_index(self, truncate_from):
        if truncate_from == "right":
            return -int(self._token_end is not None) - 1
        return int(self._token_start is not None) if truncate_from == "left" else truncate_from

    def encode_batch(
        self,
        texts: Sequence[str],
        second_texts: Sequence[str] | None = None,
        maxlen: int | None = None,
        pattern: str = "S*E*E",
        truncate_from: str | int = "right",
    ) -> list[Any]:
        """`encode` for many texts at once, with the offsets of every token.

        Args:
            texts: A list of strings.
            second_texts: A list of as many strings, or None.
            maxlen, pattern, truncate_from: As for `encode`.

        Returns:
            A list of `Encoding(token_ids, segment_ids, offsets)`.

        >>> tokenizer = Tokenizer({"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "lo": 3, "##ve": 4}, do_lower_case=True)
        >>> tokenizer.encode_batch(["Love"])[0].offsets.tolist()
        [[0, 0], [0, 2], [2, 4], [0, 0]]
        """
        if isinstance(texts, str):
            raise ValueError(f"`texts` is a list of strings. Received: {texts!r}")
        rows: Iterable[Any] = self._rows(list(texts))
        if second_texts is None and maxlen is None:
            return [Encoding(ids, [0] * len(ids), places) for ids, places in rows]
        seconds: Iterable[Any] = repeat(([], np.zeros((0, 2), np.int64)), len(texts))
        if second_texts is not None:
            if len(second_texts) != len(texts):
                raise ValueError(f"`second_texts` needs {len(texts)} texts. Received: {len(second_texts)} texts")
            seconds = self._rows(list(second_texts))
        index = self._truncation_index(truncate_from)
        pairs = zip(rows, seconds)
        return [joined(*pair, self._shared_start(pair[1][0], pattern), maxlen, index) for pair in pairs]

    def _rows(self, texts):
        """Yields the ids and the offsets of each text, with special tokens."""
        if self._changes("tokenize", "_tokenize", "_word_piece_tokenize", *_OF_A_CHARACTER):
            return map(self._by_tokenize, texts)
        if self._pre_tokenize is not None:
            return map(self._split_words, texts)
        return chain.from_iterable(self._tokenize_texts(texts[i : i + BATCH]) for i in range(0, len(texts), BATCH))

    def _by_tokenize(self, text):
        """The ids and the offsets of the tokens that `tokenize` finds: for subclasses with their own methods."""
        tokens = self.tokenize(text)
        places = [(where[0], where[-1] + 1) if where else (0, 0) for where in self.rematch(text, tokens)]
        return self.tokens_to_ids(tokens), np.array(places, np.int64).reshape(-1, 2)

    def _tokenize_texts(self, texts):
        joined, origin = self._normalized(joined_texts(texts))
        if origin is not None:  # lowering changes the length of some text: lower them one by one
            texts, origins = zip(*map(self._normalized, texts))
            joined = joined_texts(texts)
        codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32).copy()
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        ends = np.cumsum(lengths + 2) - 1
        for places, token, code in ((ends - lengths - 1, self._token_start, START), (ends, self._token_end, END)):
            if token is not None:
                codes[places] = code
                self._pieces.lone_ids.numbers[code] = self.token_to_id(token) + 1
        ids, offsets = self._pieces.tokenize(codes, self._classes.of_codes(codes))
        stops = np.searchsorted(offsets[:, 1], ends + 1, side="right")
        starts = np.zeros_like(stops)
        starts[1:] = stops[:-1]
        offsets.T[:] -= np.repeat(ends - lengths, stops - starts)
        offsets[starts[: len(texts) if self._token_start is not None else 0]] = 0
        offsets[stops[: len(texts) if self._token_end is not None else 0] - 1] = 0
        ids, slices = self._numbers[ids].tolist(), list(map(slice, starts.tolist(), stops.tolist()))
        places = map(offsets.__getitem__, slices)
        if origin is not None:
            places = map(in_original, places, origins)
        return zip(map(ids.__getitem__, slices), places)

    def _split_words(self, text):
        """The ids and the offsets of a text that `pre_tokenize` splits into words first."""
        plain, origin = self._normalized(text)
        origin = np.arange(len(plain)) if origin is None else origin
        kept = [place for place, char in enumerate(plain) if not self._classes.is_dropped_mark(char)]
        plain, place = "".join(plain[place] for place in kept), 0
        tokens, places = [], []
        for word in self._pre_tokenize(plain):
            start = plain.find(word, place)
            if start < 0:
                raise ValueError(f"`pre_tokenize` must cut the text and not change it. Received: {word!r} of {plain!r}")
            place = start + len(word)
            pieces, offsets = self._split_word(word)
            tokens += [self._token_translate.get(token) or token for token in pieces]
            places += [(start + first, start + last) for first, last in offsets]
        offsets = in_original(np.array(places, np.int64).reshape(-1, 2), origin[kept])
        before = [] if self._token_start is None else [self._token_start]
        after = [] if self._token_end is None else [self._token_end]
        padded = np.pad(offsets, ((len(before), len(after)), (0, 0)))
        return self.tokens_to_ids([*before, *tokens, *after]), padded

    def _split_word(self, word):
        """The tokens of a word of `pre_tokenize`, and their offsets in it."""
        if word in self._token_dict:
            return [word], [(0, len(word))]
        codes = np.array([ord(char) for char in word], np.uint32)
        _, offsets = self._pieces.tokenize(codes, self._classes.of_codes(codes))
        return self._tokenize(word, False), offsets.tolist()

    def _normalized(self, text):
        return characters.normalize_with_origins(text, bool(self._do_lower_case), self._strip_accents)

    def rematch(self, text: str, tokens: list[str]) -> list[list[int]]:
        """The positions in a text of the characters of each of its tokens, [] for special tokens.

        >>> Tokenizer({"[UNK]": 0, "ab": 1, "##c": 2}).rematch("x abc", ["[CLS]", "ab", "##c"])
        [[], [2, 3], [4]]
        """
        plain, origin = self._normalized(text)
        origin = range(len(plain)) if origin is None else origin.tolist()
        codes = np.array([ord(char) for char in plain], np.uint32)
        dropped = (self._classes.of_codes(codes) == characters.DROPPED).tolist()
        origin = [place for place, out in zip(origin, dropped) if not out]
        plain = "".join(char for char, out in zip(plain, dropped) if not out)
        places, offset = [], 0
        for token in tokens:
            if self._is_special(token):
                places.append([])
                continue
            written = [self.stem(form) for form in self._in_text.get(token, [token])]
            found = [(start, -len(form)) for form in written if (start := plain.find(form, offset)) >= 0]
            if not found:
                raise ValueError(
                    f"Tokens must come from the text, in its order. Received: {token!r} after {plain[:offset]!r}"
                )
            start, length = min(found)
            offset = start - length
            places.append(origin[start:offset])
        return places

    def decode(self, ids: Iterable[int] | None = None, tokens: list[str] | None = None) -> str:
        """Joins ids (or tokens) to a readable text: no spaces between Chinese characters, spaces between words."""
        text = ""
        tokens = tokens or self.ids_to_tokens([] if ids is None else ids)
        tokens = [token for token in tokens if not self._is_special(token)]
        for token in tokens:
            if token.startswith("##"):
                text += token[2:]
            elif len(token) == 1 and self._is_punctuation(token):
                text += token + " "
            elif len(token) == 1 and self._is_cjk_character(token) or text and self._is_cjk_character(text[-1]):
                text += token
            else:
                text += " " + token
        return tidy(text)

    stem = staticmethod(stem)
    _is_space = staticmethod(characters.is_space)
    _is_punctuation = staticmethod(is_punctuation)
    _is_cjk_character = staticmethod(is_cjk_character)
    _is_control = staticmethod(characters.is_control)

    @staticmethod
    def _cjk_punctuation():
        return characters.CJK_PUNCTUATION

    @staticmethod
    def _is_special(ch):
        return bool(ch) and ch[0] == "[" and ch[-1] == "]"

    @staticmethod
    def _is_redundant(token):
        """Whether no text has this token: it is longer than a character and has a Chinese one or a punctuation mark."""
        return len(token) > 1 and any(is_cjk_character(char) or is_punctuation(char) for char in stem(token))

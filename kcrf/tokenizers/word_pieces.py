"""Splits words into pieces of a vocabulary: word by word, or all words of an array of code points at once."""

from itertools import chain

import numpy as np

from kcrf.extras import needs_extra
from kcrf.tokenizers.characters import DROPPED, END, WORD, word_starts

CACHED_WORDS = 1 << 18


class WordPieces:
    """Splits words into pieces. The Rust library `tokenizers` does so once for each distinct word."""

    def __init__(self, token_dict, word_maxlen, id_of):
        self._model = _library_model(token_dict, word_maxlen)
        self._id_of = id_of
        self._clear_caches()

    def _clear_caches(self):
        self._split_words = {}
        self._lone_ids = np.zeros(
            END + 1, np.int32
        )  # by code point: the id of the character, plus 1; 0 means not looked up yet

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name not in ("_split_words", "_lone_ids")}

    def __setstate__(self, state):
        vars(self).update(state)
        self._clear_caches()

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

    def set_id(self, code, number):
        """Sets the id of a code point: of one that Unicode does not use, for the start or the end token."""
        self._lone_ids[code] = number + 1

    def tokenize(self, codes, classes):
        """Tokenizes an array of code points, given their classes (see `kcrf.tokenizers.characters`)."""
        kept, starts, in_word = word_starts(classes)
        is_word = in_word[starts]
        text = np.where(classes == WORD, codes, ord(" "))[classes != DROPPED]
        pieces = self.of(text.tobytes().decode("utf-32-le", "surrogatepass").split())
        counts = np.ones(len(starts), np.int64)
        counts[is_word] = [len(tokens) for tokens, _, _ in pieces]
        of_word = np.flatnonzero(np.repeat(is_word, counts))
        ids = np.repeat(self._ids_of_characters(codes[kept[starts]], ~is_word), counts)
        ids[of_word] = list(chain.from_iterable(numbers for _, numbers, _ in pieces))
        lengths = np.ones(len(ids), np.int64)
        lengths[of_word] = list(chain.from_iterable(sizes for _, _, sizes in pieces))
        ends = np.cumsum(lengths)
        return ids, np.array([kept[ends - lengths], kept[ends - 1] + 1]).T

    def _ids_of_characters(self, codes, alone):
        """The ids of the characters that are words of their own; undefined for the others."""
        ids = self._lone_ids[codes]
        unknown = codes[(ids == 0) & alone]
        if len(unknown):
            for code in set(unknown.tolist()):
                self._lone_ids[code] = self.of([chr(code)])[0][1][0] + 1
            ids = self._lone_ids[codes]
        return ids - 1


def _library_model(token_dict, word_maxlen):
    with needs_extra("transformers", "Tokenizer"):
        from tokenizers.models import WordPiece
    vocabulary = token_dict if "[UNK]" in token_dict else {**token_dict, "[UNK]": 0}  # the library requires it
    return WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=word_maxlen)

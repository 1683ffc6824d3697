"""Words cut into pieces of a vocabulary: one by one, or all those of a row of code points at once."""

from itertools import chain

import numpy as np

from kcrf.tokenizers.characters import ALONE, DROPPED, END, SPACE, WORD

__all__ = ["WordPieces"]

CACHED_WORDS = 1 << 18


class WordPieces:
    """The pieces of words, which the Rust library `tokenizers` cuts once for each distinct word.

    Args:
        token_dict: A dict from token to id.
        word_maxlen: Longest word, in characters, that is cut.
        id_of: A function from a token to its id.
    """

    def __init__(self, token_dict, word_maxlen, id_of):
        self._model = _library_model(token_dict, word_maxlen)
        self._id_of = id_of
        self._forget()

    def _forget(self):
        self._known = {}
        self._lone_ids = np.zeros(END + 1, np.int32)  # code point -> id + 1 of the character, 0 = not looked up yet

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name not in ("_known", "_lone_ids")}

    def __setstate__(self, state):
        vars(self).update(state)
        self._forget()

    def tokens(self, word):
        """The tokens of a word; the word itself where the vocabulary lacks it."""
        try:
            tokens = [piece.value for piece in self._model.tokenize(word)]
        except UnicodeEncodeError:  # half of a surrogate pair: in no vocabulary, and not to be handed to Rust
            return [word]
        return [word] if len(tokens) == 1 else tokens  # the library says [UNK] where bert4keras leaves the word

    def of(self, words):
        """For each word its tokens, their ids, and their lengths in characters."""
        known, cut = self._known.get, self._cut
        return [known(word) or cut(word) for word in words]

    def _cut(self, word):
        if len(self._known) >= CACHED_WORDS:
            self._known.clear()
        tokens = self.tokens(word)
        lengths = [len(token) - 2 * (place > 0) for place, token in enumerate(tokens)]
        pieces = self._known[word] = (tokens, [self._id_of(token) for token in tokens], lengths)
        return pieces

    def name(self, code, number):
        """Lets a code point behind Unicode stand for the token of this id."""
        self._lone_ids[code] = number + 1

    def row(self, codes, kinds):
        """The ids of the tokens that a row of code points of these kinds makes, and their offsets `(tokens, 2)`."""
        solid = np.flatnonzero(kinds <= ALONE)  # the characters that tokens are made of
        in_word = kinds[solid] == WORD
        is_start = np.ones(len(solid) + 1, bool)  # of a word, or a character alone
        is_start[1:-1] = ~(in_word[1:] & in_word[:-1])
        is_start[np.searchsorted(solid, np.flatnonzero(kinds == SPACE))] = True
        starts = np.flatnonzero(is_start[:-1])
        is_word = in_word[starts]
        text = np.where(kinds == WORD, codes, ord(" "))[kinds != DROPPED]
        pieces = self.of(text.tobytes().decode("utf-32-le", "surrogatepass").split())
        counts = np.ones(len(starts), np.int64)
        counts[is_word] = [len(tokens) for tokens, _, _ in pieces]
        of_word = np.flatnonzero(np.repeat(is_word, counts))
        ids = np.repeat(self._ids_of_characters(codes[solid[starts]], ~is_word), counts)
        ids[of_word] = list(chain.from_iterable(numbers for _, numbers, _ in pieces))
        lengths = np.ones(len(ids), np.int64)
        lengths[of_word] = list(chain.from_iterable(sizes for _, _, sizes in pieces))
        ends = np.cumsum(lengths)
        return ids, np.array([solid[ends - lengths], solid[ends - 1] + 1]).T

    def _ids_of_characters(self, codes, alone):
        """The ids of the characters that stand alone; anything for the others."""
        ids = self._lone_ids[codes]
        unknown = codes[(ids == 0) & alone]
        if len(unknown):
            for code in set(unknown.tolist()):
                self._lone_ids[code] = self.of([chr(code)])[0][1][0] + 1
            ids = self._lone_ids[codes]
        return ids - 1


def _library_model(token_dict, word_maxlen):
    try:
        from tokenizers.models import WordPiece
    except ImportError:
        raise ImportError("Tokenizer needs the package tokenizers: pip install kcrf[transformers]") from None
    vocabulary = token_dict if "[UNK]" in token_dict else {**token_dict, "[UNK]": 0}  # the library needs the word
    return WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=word_maxlen)

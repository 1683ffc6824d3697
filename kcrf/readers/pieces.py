"""Reads texts as the pieces of an encoder's tokenizer."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np

from kcrf.checkpoints.configs import encoder_config
from kcrf.readers.padding import BUCKETS, LONG_BUCKETS, Inputs, TokenRow
from kcrf.readers.units import Reader, Reading, Texts, Tokens, Window
from kcrf.readers.vectors import WordVectors
from kcrf.readers.windows import bounds_of_parts, cut_pair, last_characters, whole_reading, windows
from kcrf.tokenizers import SubwordTokenizer, Tokenizer, vocabularies
from kcrf.tokenizers.subwords import UnitPieces
from kcrf.tokenizers.vocabularies import WHOLE

CASES = ("lower", "Capitalised", "CAPITALS", "miXed")  # of words, numbered from 1; 0 is a word without case
SPLITTING = {"strip_accents": None, "tokenize_chinese_chars": True}  # of most BERTs
_ROLES = {"start": "[CLS]", "end": "[SEP]", "pad": "[PAD]", "unk": "[UNK]", "mask": "[MASK]"}
_OVERLAP = 16  # the maximum number of pieces that two windows share


class EncoderReader(Reader):
    """Reads texts for an encoder, as pieces between a start and an end token. Units, the words of BERT's tokenizer or
    given tokens, are tagged at their first piece. Other pieces have no tags. `ids` has the ids of special tokens by
    role, `size` is the largest id plus 1. `between` are the ids between two texts, `segment` is that of the second."""

    def __init__(
        self,
        config: dict[str, Any],
        ids: Mapping[str, int],
        size: int,
        word_case: bool,
        vectors: WordVectors | None,
        by_tokens: bool,
        between: list[int],
        segment: int = 1,
    ) -> None:
        if size > config.get("vocab_size", np.inf):
            raise ValueError(
                f"The vocabulary must be that of the BERT, whose vocab_size is {config['vocab_size']}. "
                f"Received: {size} tokens"
            )
        self.config = {**config, "masked_token_id": ids["pad"]}
        self.word_case, self.vectors, self.by_tokens = word_case, vectors, by_tokens
        self.ids, self.size, self._between, self._segment = ids, size, between, segment
        self.has_segments = config.get("type_vocab_size", 2) > 1
        positions = config.get("max_position_embeddings", BUCKETS[-1])
        if config.get("model_type") == "xlm-roberta":  # its first position is the one after the padding token
            positions -= config["pad_token_id"] + 1
        if positions < BUCKETS[0]:
            raise ValueError(f"A BERT has {BUCKETS[0]} positions or more. Received: {positions}")
        self.positions = positions
        self._limit = max(length for length in BUCKETS if length <= positions) - 2
        self.longest = max(length for length in (*BUCKETS, *LONG_BUCKETS) if length <= positions)

    def _pieces(self, texts: Sequence[str], tokens: Sequence[Any]) -> list[UnitPieces]:
        """The pieces of each text. Its units are its tokens, or without any its words."""
        raise NotImplementedError

    def whole_pieces(self, texts: Sequence[str]) -> list[UnitPieces]:
        """The pieces of each text as the tokenizer splits it; a piece may belong to two words."""
        return self._pieces(texts, [()] * len(texts))

    def read(self, texts: Sequence[str], tokens: Tokens = None) -> list[Reading]:
        """The `Reading` of each text. If `by_tokens`, the units are `tokens`, as for `WordReader.read`."""
        given = tokens if tokens and self.by_tokens else [()] * len(texts)
        pieces = self._pieces(list(texts), given)
        words = pieces if self.vectors is None or given is not tokens else self._pieces(list(texts), [()] * len(texts))
        return [self._read_one(*item) for item in zip(texts, pieces, words, strict=True)]

    def read_texts(self, texts: Texts, max_length: int, whole: bool = False) -> list[Reading]:
        """A list with the `Reading` of each whole text: `[CLS] text [SEP]`, or `[CLS] text [SEP] text_b [SEP]`."""
        first, second = (self.whole_pieces([pair[i] or "" for pair in texts]) for i in (0, 1))
        room = min(max_length, self.longest) - 2
        readings = []
        for (text, text_b), a, b in zip(texts, first, second, strict=True):
            if text_b is None:
                parts, size = self._parts(text, a, room, whole), 0 if whole else len(a.ids)
            else:
                parts, size = self._pair(text, a, text_b, b, room), len(a.ids) + len(self._between) + len(b.ids)
            readings.append(whole_reading(parts, size > room))
        return readings

    def _parts(self, text: str, pieces: UnitPieces, room: int, whole: bool) -> Iterator[dict[str, Any]]:
        """Yields the inputs of each window of a single text."""
        vectors = self._vectors_of_pieces(text, pieces)
        for bounds in bounds_of_parts(last_characters(text, pieces.ends), room, whole):
            part = slice(*bounds)
            yield self._whole_inputs(self._enclosed(pieces.ids[part]), [], vectors[part], vectors[:0])

    def _pair(self, text: str, pieces: UnitPieces, text_b: str, pieces_b: UnitPieces, room: int) -> Iterator[Inputs]:
        """Yields the inputs of a pair of texts."""
        ids, ids_b = cut_pair(pieces.ids, pieces_b.ids, room - len(self._between))
        vectors = self._vectors_of_pieces(text, pieces)[: len(ids)]
        vectors_b = self._vectors_of_pieces(text_b, pieces_b)[: len(ids_b)]
        first = [self.ids["start"], *ids, *self._between]
        yield self._whole_inputs(first, [*ids_b, self.ids["end"]], vectors, vectors_b)

    def _whole_inputs(self, first: list[int], second: list[int], vectors: np.ndarray, vectors_b: np.ndarray) -> Inputs:
        """The inputs of the ids of both segments, and the word vectors of their texts."""
        inputs: dict[str, Any] = {"Input-Token": TokenRow.of([*first, *second], self.ids["pad"])}
        if self.has_segments:
            inputs["Input-Segment"] = [0] * len(first) + [self._segment] * len(second)
        if self.vectors is not None:
            inputs["vectors"] = np.zeros((len(first) + len(second), self.vectors.places), "int32")
            inputs["vectors"][1 : len(vectors) + 1] = vectors
            inputs["vectors"][len(first) : len(first) + len(vectors_b)] = vectors_b
        return inputs

    def _enclosed(self, ids: list[int]) -> list[int]:
        return [self.ids["start"], *ids, self.ids["end"]]

    def _vectors_of_pieces(self, text: str, words: UnitPieces) -> np.ndarray:
        """The rows of the word vectors of the words to which the pieces of a text belong, `(pieces, places)`."""
        word = np.searchsorted(words.first, np.arange(len(words.ids)), side="right")  # (pieces,), from 1
        rows = self.vectors.encode(text, words.units) if self.vectors else np.zeros((len(words.units), 0), "int32")
        return np.concatenate([np.zeros_like(rows, shape=(1, rows.shape[1])), rows])[word]

    def _read_one(self, text: str, pieces: UnitPieces, words: UnitPieces) -> Reading:
        ids, ends, units, first = pieces
        rows = None if self.vectors is None else self._vectors_of_pieces(text, words)
        cases = [case_of(text[start:end]) for start, end in units.tolist()] if self.word_case else []
        parts, overlap = [], min(_OVERLAP, self._limit // 4)
        for start, end, *keep in windows(last_characters(text, ends), self._limit, overlap):
            before, behind, *keep = np.searchsorted(first, [start, end, *keep]).tolist()  # pieces to units
            positions = first[before:behind] - start + 1  # [CLS] is at position 0
            inputs = self._inputs(ids[start:end], positions, cases[before:behind])
            if rows is not None:
                inputs["vectors"] = np.pad(rows[start:end], ((1, 1), (0, 0)))  # [CLS] and [SEP] have no vectors
            parts.append(Window(inputs, positions, before, tuple(keep)))
        return Reading(units, parts)

    def _inputs(self, ids: list[int], positions: np.ndarray, cases: list[int]) -> dict[str, Any]:
        length, row = len(ids) + 2, TokenRow.of(self._enclosed(ids), self.ids["pad"])
        inputs: dict[str, Any] = {"Input-Token": row, "tagged": _row(length, positions, 1)}
        if self.has_segments:
            inputs["Input-Segment"] = [0] * length
        if self.word_case:
            inputs["case"] = _row(length, positions, cases)
        return inputs

    def with_tokens(self) -> Self:
        """The same reader with `by_tokens`: its units are the tokens that are passed with the texts."""
        return self.changed(by_tokens=True)

    def with_config(self, config: dict[str, Any], word_case: bool) -> Self:
        """The same reader, without word vectors and tokens, for an encoder with fewer layers."""
        return self.changed(config=config, word_case=word_case, vectors=None, by_tokens=False)


class PieceReader(EncoderReader):
    """Reads texts as the WordPieces of BERT's tokenizer."""

    def __init__(
        self,
        config: dict[str, Any],
        vocabulary: dict[str, int],
        lower_case: bool,
        word_case: bool = False,
        strip_accents: bool | None = None,
        tokenize_chinese_chars: bool = True,
        vectors: WordVectors | None = None,
        by_tokens: bool = False,
    ) -> None:
        absent = [token for token in ("[PAD]", "[UNK]", "[CLS]", "[SEP]") if token not in vocabulary]
        if absent:
            raise ValueError(f"The vocabulary of a BERT has {', '.join(absent)}. Received: {len(vocabulary)} others")
        ids = {role: vocabulary[token] for role, token in _ROLES.items() if token in vocabulary}
        super().__init__(config, ids, max(vocabulary.values()) + 1, word_case, vectors, by_tokens, [ids["end"]])
        self.vocabulary, self.lower_case = vocabulary, lower_case
        self.splitting: dict[str, Any] = dict(zip(SPLITTING, (strip_accents, tokenize_chinese_chars), strict=True))
        self._tokenizer = Tokenizer(vocabulary, lower_case, token_start=None, token_end=None, **self.splitting)
        self._continues = vocabularies.continues_word(vocabulary)

    def _pieces(self, texts: Sequence[str], tokens: Sequence[Any]) -> list[UnitPieces]:
        found = []
        for encoded, given in zip(self._tokenizer.encode_batch(list(texts)), tokens, strict=True):
            units, first = _units_of_tokens(encoded, given) if len(given) else self._units(encoded)
            found.append(UnitPieces(encoded.token_ids, encoded.offsets[:, 1], units, first))
        return found

    def _units(self, encoded: Any) -> tuple[np.ndarray, np.ndarray]:
        """The start and end of each unit, `(units, 2)`, and the number of its first piece, `(units,)`."""
        ids, (starts, ends) = encoded.token_ids, encoded.offsets.T  # (pieces,) each
        covered = np.maximum.accumulate(np.append(0, ends))  # (pieces + 1,): the end of all pieces before
        first = np.flatnonzero(~self._continues[ids] & (starts >= covered[:-1]))
        last = np.append(first[1:], len(ids))[: len(first)] - 1  # (units,)
        return np.stack([starts[first], ends[last]], axis=1), first

    def get_config(self) -> dict[str, Any]:
        """A dict of plain values from which, with the vocabulary, `from_config` creates the same reader."""
        changed = {name: value for name, value in self.splitting.items() if value != SPLITTING[name]}
        changed |= {"by_tokens": True} if self.by_tokens else {}
        return {**self.config, "lower_case": self.lower_case, "word_case": self.word_case, **changed}

    @classmethod
    def from_config(cls, config: dict[str, Any], vocabulary: dict[str, int]) -> Self:
        """Creates a reader from the result of `get_config`."""
        config = dict(config)
        lower_case, word_case = config.pop("lower_case", None), config.pop("word_case", False)
        if lower_case is None:
            raise ValueError("needs lower_case, as a run has it. Received: none")
        changed = {name: config.pop(name, default) for name, default in {**SPLITTING, "by_tokens": False}.items()}
        return cls(config, vocabulary, lower_case, word_case, **changed)


def lowest_layers(where: object, config: dict[str, Any], layers: int | None) -> dict[str, Any]:
    """The configuration of an encoder with its lowest `layers` layers, or all layers if `layers` is None."""
    existing = config.get("num_hidden_layers")
    if layers is not None and not (existing and layers <= existing):
        raise ValueError(f"{where}: has {existing} layers. Received: bert_layers={layers}")
    return {**config, "num_hidden_layers": layers or existing}


def _units_of_tokens(encoded: Any, tokens: Any) -> tuple[np.ndarray, np.ndarray]:
    """As `PieceReader._units`, for units that are the tokens `(start, end)` of the text."""
    tokens, (starts, ends) = np.array(tokens, int), encoded.offsets.T  # (tokens, 2); (pieces,) each
    first = np.searchsorted(np.maximum.accumulate(ends), tokens[:, 0], side="right")  # (tokens,)
    has_piece = np.append(starts, np.inf)[first] < tokens[:, 1]
    tokens, first = tokens[has_piece], first[has_piece]
    is_new = np.diff(first, prepend=-1) > 0  # a piece that crosses a token boundary belongs to the first token
    return tokens[is_new], first[is_new]


def _row(length: int, positions: np.ndarray, values: Any) -> list[int]:
    """A list of integers with values at some positions and 0 elsewhere."""
    array = np.zeros(length, int)
    array[positions] = values
    return array.tolist()


def case_of(word: str) -> int:
    """The case of a word, its number in `CASES`; 0 for a word without case, such as Chinese or digits."""
    lower, upper = word.lower(), word.upper()
    if lower == upper:
        return 0
    if word == lower:
        return 1
    if word[0] != lower[0] and word[1:] == word[1:].lower():
        return 2
    return 3 if word == upper else 4


class SubwordReader(EncoderReader):
    """Reads texts unit by unit with a `SubwordTokenizer`, so that no piece belongs to two units."""

    def __init__(
        self,
        config: dict[str, Any],
        tokenizer: SubwordTokenizer,
        word_case: bool = False,
        vectors: WordVectors | None = None,
        by_tokens: bool = False,
    ) -> None:
        ids = tokenizer.ids
        between, segment = tokenizer.separators() or [ids["end"]], tokenizer.encode("a", "a")[1][-1]
        super().__init__(config, ids, tokenizer.vocab_size, word_case, vectors, by_tokens, between, segment)
        self.tokenizer = tokenizer

    def _pieces(self, texts: Sequence[str], tokens: Sequence[Any]) -> list[UnitPieces]:
        split = self.tokenizer.units_of
        units = [np.array(given, int) if len(given) else split(text) for text, given in zip(texts, tokens)]
        return self.tokenizer.encode_units(texts, units)

    def whole_pieces(self, texts: Sequence[str]) -> list[UnitPieces]:
        found = []
        for text, encoded in zip(texts, self.tokenizer.encode_batch(texts, add_special_tokens=False), strict=True):
            ends, words = encoded.offsets[:, 1], self.tokenizer.units_of(text)
            first = np.searchsorted(np.maximum.accumulate(ends), words[:, 0], side="right")  # (words,)
            has_piece = first < len(ends)
            found.append(UnitPieces(encoded.token_ids, ends, words[has_piece], first[has_piece]))
        return found

    def get_config(self) -> dict[str, Any]:
        """A dict of plain values from which, with the definition of the tokenizer, `from_config` creates the reader."""
        changed = {"by_tokens": True} if self.by_tokens else {}
        return {**self.config, "special_tokens": self.tokenizer.special, "word_case": self.word_case, **changed}

    @classmethod
    def from_config(cls, config: dict[str, Any], definition: str) -> Self:
        """Creates a reader from the result of `get_config` and the content of `tokenizer.json`."""
        config = dict(config)
        tokenizer = SubwordTokenizer(definition, config.pop("special_tokens"))
        word_case, by_tokens = config.pop("word_case", False), config.pop("by_tokens", False)
        return cls(config, tokenizer, word_case, by_tokens=by_tokens)


def encoder_reader(
    folder: str | PathLike[str], layers: int | None = None, lower_case: bool | None = None, word_case: bool = False
) -> EncoderReader:
    """Creates the reader for the lowest layers of the encoder in a folder, by the kind of its tokenizer."""
    folder = Path(folder)
    config = lowest_layers(folder, encoder_config(folder), layers)
    make: Callable[[], EncoderReader]
    if vocabularies.has_subwords(folder):
        if lower_case is not None:
            raise ValueError(f"{folder}: tokenizer.json decides on lower case. Received: lower_case={lower_case}")
        path, make = folder / WHOLE, partial(SubwordReader, config, SubwordTokenizer.of_folder(folder), word_case)
    else:
        path, settings = vocabularies.vocabulary_file(folder), vocabularies.read_tokenizer_settings(folder)
        vocabulary = vocabularies.read_vocabulary(path)
        lower_case = settings.do_lower_case if lower_case is None else lower_case
        if lower_case is None:  # no token has capitals, so that text must be lower-cased
            lower_case = not any(token != token.lower() for token in vocabulary if not token.startswith("["))
        splitting = settings.strip_accents, settings.tokenize_chinese_chars is not False
        make = partial(PieceReader, config, vocabulary, lower_case, word_case, *splitting)
    try:
        return make()
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None

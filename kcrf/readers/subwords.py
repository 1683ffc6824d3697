"""Reads texts as the pieces of a Unigram or byte-level BPE tokenizer, as XLM-R and RoBERTa have them."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np

from kcrf.readers.pieces import EncoderReader, PieceReader, SpecialIds, layers_of
from kcrf.readers.vectors import WordVectors
from kcrf.tokenizers import SubwordTokenizer
from kcrf.tokenizers.characters import words_of
from kcrf.tokenizers.folders import has_subwords
from kcrf.tokenizers.subwords import UnitPieces


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
        segment = tokenizer.encode("a", "a")[1][-1]
        special = SpecialIds(ids["start"], tokenizer.separators() or [ids["end"]], ids["end"], ids["pad"], segment)
        super().__init__(config, special, tokenizer.vocab_size, word_case, vectors, by_tokens)
        self.tokenizer = tokenizer

    def _pieces(self, texts: Sequence[str], tokens: Sequence[Any]) -> list[UnitPieces]:
        units = [np.array(given, int) if len(given) else words_of(text) for text, given in zip(texts, tokens)]
        return self.tokenizer.encode_units(texts, units)

    def _whole_pieces(self, texts: Sequence[str]) -> list[UnitPieces]:
        found = []
        for text, encoded in zip(texts, self.tokenizer.encode_batch(texts, add_special_tokens=False), strict=True):
            ends, words = encoded.offsets[:, 1], words_of(text)
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

    @classmethod
    def of_bert(
        cls,
        folder: str | PathLike[str],
        layers: int | None = None,
        lower_case: bool | None = None,
        word_case: bool = False,
    ) -> Self:
        """Creates a reader for the encoder in a folder with a `tokenizer.json`, which decides on lower case."""
        if lower_case is not None:
            raise ValueError(f"{folder}: tokenizer.json decides on lower case. Received: lower_case={lower_case}")
        tokenizer = SubwordTokenizer.of_folder(folder)
        try:
            return cls(layers_of(folder, layers), tokenizer, word_case)
        except ValueError as error:
            raise ValueError(f"{Path(folder) / 'tokenizer.json'}: {error}") from None


def encoder_reader(
    folder: str | PathLike[str], layers: int | None = None, lower_case: bool | None = None, word_case: bool = False
) -> EncoderReader:
    """Creates the reader for the encoder in a folder, by the kind of its tokenizer."""
    kind: type[SubwordReader] | type[PieceReader] = SubwordReader if has_subwords(folder) else PieceReader
    return kind.of_bert(folder, layers, lower_case, word_case)

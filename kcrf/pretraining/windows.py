"""Learns a vocabulary from text, writes text as tokens to disk, and reads windows of tokens. Needs no Keras."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kcrf.corpora.lines import check_is_file, decode_lines, refuse_records
from kcrf.extras import needs_extra
from kcrf.files import write_aside
from kcrf.readers.pieces import EncoderReader
from kcrf.tokenizers.characters import is_cjk_character

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_LINES_AT_A_TIME = 2000


def iterate_lines(paths: Iterable[Any]) -> Iterator[str]:
    """Yields the lines of UTF-8 files that are not blank. Files may be larger than memory."""
    paths = list(paths)
    for path in paths:
        check_is_file(path)
    for path in paths:
        with open(path, "rb") as file:
            lines = (line for line in decode_lines(file, path) if line.strip())
            first = next(lines, None)
            if first is not None:
                refuse_records(f"{path}:1", first)
                yield first
            yield from lines


def write_tokens(path: Path, lines: Iterable[str], reader: EncoderReader, split_words: Any = None) -> int:
    """Writes the tokens of lines to a file, with the end token after each line.

    A token is an int32: its id, or `-1 - id` if it continues the word of the token before it.
    """
    count, source = 0, iter(lines)

    def write(aside: Path) -> None:
        nonlocal count
        with open(aside, "wb") as file:
            while batch := list(islice(source, _LINES_AT_A_TIME)):
                for line, (pieces, _, units, first) in zip(batch, reader.whole_pieces(batch), strict=True):
                    ids = np.array([*pieces, reader.ids["end"]], np.int32)
                    begins = np.zeros(len(ids), bool)
                    begins[-1] = True
                    begins[first] = True if split_words is None else _begin_words(line, split_words, units[:, 0])
                    np.where(begins, ids, -1 - ids).tofile(file)
                    count += len(ids)

    write_aside(path, write)
    return count


def _begin_words(line: str, split_words: Any, places: np.ndarray) -> np.ndarray:
    """Whether a word begins at each of some places in a line."""
    words = split_words(line)
    if words is None:
        return np.ones(len(places), bool)
    starts = np.zeros(len(line) + 1, bool)
    starts[np.cumsum([0, *map(len, words)])] = True
    return starts[places]


class Window(NamedTuple):
    """A window of tokens."""

    token_ids: np.ndarray  # (length,) int32
    starts: np.ndarray  # (length,) bool, whether a token begins a word


class Windows:
    """Windows of tokens: `[CLS]` and the next tokens, across lines. All are full, but the only one of a short text."""

    def __init__(self, path: Path, length: int, start_id: int, pad_id: int) -> None:
        self._tokens = np.memmap(path, np.int32, "r")
        self._length, self._start_id, self._pad_id = length, start_id, pad_id

    def __len__(self) -> int:
        return max(1, len(self._tokens) // (self._length - 1))

    def __getitem__(self, number: int) -> Window:
        """The n-th `Window`."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        size = self._length - 1
        tokens = np.asarray(self._tokens[number * size : (number + 1) * size])
        starts = np.concatenate([[True], tokens >= 0])
        ids = np.concatenate([[self._start_id], np.where(tokens >= 0, tokens, -1 - tokens)])
        missing = self._length - len(ids)
        ids = np.pad(ids, (0, missing), constant_values=self._pad_id).astype(np.int32)
        starts = np.pad(starts, (0, missing), constant_values=True)
        if len(starts) > 1:
            starts[1] = True  # a word that begins before the window
        return Window(ids, starts)


def word_splitter() -> Callable[[str], list[str] | None]:
    """The `split_words` of `write_tokens`: jieba's words, or None for text without Chinese characters."""
    return lambda text: _jieba().lcut(text) if any(map(is_cjk_character, text)) else None


@cache
def _jieba() -> Any:
    with needs_extra("pretrain", "Masking whole words of Chinese text"):
        import jieba
    jieba.setLogLevel(60)
    return jieba


def learn_vocabulary(lines: Iterable[str], size: int, lower_case: bool = True) -> list[str]:
    """Learns a WordPiece vocabulary.

    >>> learn_vocabulary(["low lower lowest"] * 9, 12)[:5]
    ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
    """
    with needs_extra("pretrain", "A new vocabulary"):
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    learner = Tokenizer(models.WordPiece(unk_token="[UNK]"))  # noqa: S106 (no password)
    learner.normalizer = normalizers.BertNormalizer(lowercase=lower_case)
    learner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL_TOKENS),
        limit_alphabet=int(0.75 * (size - len(SPECIAL_TOKENS))),  # leaves room for pieces
        continuing_subword_prefix="##",
        show_progress=False,
    )
    characters, normalizer = Counter(), normalizers.BertNormalizer(lowercase=lower_case)  # the learner locks its own

    def counted() -> Iterator[str]:
        for line in lines:
            characters.update(normalizer.normalize_str(line))
            yield line

    learner.train_from_iterator(counted(), trainer)
    pieces = learner.get_vocab()
    rare_characters = [char for char, _ in characters.most_common() if char not in pieces and not char.isspace()]
    return [*sorted(pieces, key=pieces.__getitem__), *rare_characters][:size]

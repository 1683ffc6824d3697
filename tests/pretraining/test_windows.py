"""Tests of kcrf.pretraining.windows.

Texts as tokens on disk and as windows: every token once, whole words, and no file is read as a whole.
"""

import numpy as np
import pytest

from kcrf.pretraining.windows import Windows, iterate_lines, learn_vocabulary, word_splitter, write_tokens
from kcrf.readers import PieceReader
from kcrf.tokenizers import Tokenizer

BACKENDS = ["torch"]
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "low", "##est", "##er", "price", *"今天天气好"]
VOCABULARY = {token: number for number, token in enumerate(dict.fromkeys(TOKENS))}
LINES = ["The lowest price", "lower LOW prices", "今天天气好", "the price 今天 low"]


def windows_of(path, length=6, lines=LINES, **options):
    count = write_tokens(path / "tokens.bin", lines, PieceReader({}, VOCABULARY, True), **options)
    return count, Windows(path / "tokens.bin", length, VOCABULARY["[CLS]"], VOCABULARY["[PAD]"])


def test_windows_hold_every_token_once_and_are_full(tmp_path):
    count, windows = windows_of(tmp_path)
    tokenizer = Tokenizer(VOCABULARY, True)
    expected = [token for line in LINES for token in tokenizer.encode(line)[0][1:]]  # without [CLS]
    assert count == len(expected)
    rows = [windows[number][0] for number in range(len(windows))]
    assert [row.shape for row in rows] == [(6,)] * (count // 5) and all(row[0] == VOCABULARY["[CLS]"] for row in rows)
    assert np.concatenate([row[1:] for row in rows]).tolist() == expected[: count // 5 * 5]
    with pytest.raises(IndexError):
        windows[len(windows)]


def test_pieces_and_words_of_jieba_continue_a_word(tmp_path):
    _, windows = windows_of(tmp_path, length=99)
    tokens, starts = windows[0]
    inverse = {number: token for token, number in VOCABULARY.items()}
    inner = [inverse[token] for token, start in zip(tokens.tolist(), starts) if not start]
    assert inner == ["##est", "##er"]
    words = {"今天天气好": ["今天", "天气", "好"], "the price 今天 low": ["the", " ", "price", " ", "今天", " ", "low"]}
    _, windows = windows_of(tmp_path, length=99, split_words=words.get)
    tokens, starts = windows[0]
    inner = [inverse[token] for token, start in zip(tokens.tolist(), starts) if not start]
    assert inner == ["##est", "##er", "天", "气", "天"]
    assert word_splitter()("the 今天") == ["the", " ", "今天"] and word_splitter()("the price") is None


def test_the_rest_is_padded_where_it_is_all_there_is(tmp_path):
    _, windows = windows_of(tmp_path, length=12, lines=["the low price"])
    tokens, starts = windows[0]
    assert len(windows) == 1
    assert tokens.tolist() == [VOCABULARY[t] for t in ["[CLS]", "the", "low", "price", "[SEP]"]] + [0] * 7
    assert starts.all()


def test_a_word_that_a_window_cuts_begins_anew(tmp_path):
    _, windows = windows_of(tmp_path, length=2, lines=["lowest lowest"])
    assert all(windows[number][1].all() for number in range(len(windows)))


def test_files_are_read_line_by_line(tmp_path):
    for name, text in (("a", "one\r\n\n \ntwo"), ("b", "\ufeffthree\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    lines = iterate_lines([tmp_path / "a", tmp_path / "b"])
    assert next(lines) == "one" and list(lines) == ["two", "three"]
    with pytest.raises(FileNotFoundError, match="nothing: no such file"):
        list(iterate_lines([tmp_path / "nothing"]))
    with pytest.raises(IsADirectoryError, match="needs a file. Received: a folder"):
        list(iterate_lines([tmp_path]))
    (tmp_path / "c").write_bytes(b"fine\n\xff\n")
    with pytest.raises(ValueError, match="c:2: needs UTF-8 text"):
        list(iterate_lines([tmp_path / "c"]))


def test_a_vocabulary_has_all_characters_and_the_most_frequent_pieces():
    vocabulary = learn_vocabulary(["Lower lowest 今天"] * 50 + ["rare zebra"], 32)
    assert vocabulary[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] and len(vocabulary) == 32
    assert {"今", "天", "l", "##o"} <= set(vocabulary) and "zebra" not in vocabulary
    tokenizer = Tokenizer({token: number for number, token in enumerate(vocabulary)}, True)
    assert tokenizer.tokenize("今天 low 明")[1:3] == ["今", "天"] and tokenizer.encode("明")[0] == [2, 1, 3]
    assert "L" in learn_vocabulary(["Lower"] * 9, 24, lower_case=False)


def test_characters_fill_a_vocabulary_for_which_there_are_no_pieces():
    """Chinese words are single characters: there is nothing else to learn from them."""
    characters = [chr(0x4E00 + number) for number in range(100)]
    lines = [" ".join(characters[: number + 1]) for number in range(100)]  # the first is the most frequent
    assert learn_vocabulary(lines, 85)[5:] == characters[:80]
    assert set(learn_vocabulary(lines, 200)[5:]) == set(characters)

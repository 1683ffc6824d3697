"""kcrf.corpora: what is read, what is refused, and what the built-in corpus promises."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcrf.corpora import load_mini, read_segmented, split


def write(tmp_path, data):
    path = tmp_path / "text.txt"
    path.write_bytes(data)
    return path


def test_lines_are_sentences_and_blanks_separate_words(tmp_path):
    path = write(tmp_path, "\ufeff我  爱 北京\r\n\n一\u2028二\u3000三\n".encode())
    assert read_segmented(path) == [["我", "爱", "北京"], [], ["一", "二", "三"]]


def test_a_last_line_without_an_end_is_read(tmp_path):
    assert read_segmented(write(tmp_path, b"a b\nc")) == [["a", "b"], ["c"]]


@pytest.mark.parametrize("data", [b"", b"\n\n", b" \t\n"])
def test_a_file_without_words_is_refused_by_name(tmp_path, data):
    with pytest.raises(ValueError, match="text.txt: needs at least one line of words"):
        read_segmented(write(tmp_path, data))


def test_a_missing_file_is_named():
    with pytest.raises(FileNotFoundError, match="nowhere.txt: no such file"):
        read_segmented("nowhere.txt")


def test_a_wrong_encoding_is_told_by_line_and_byte(tmp_path):
    path = write(tmp_path, "好 的\n我 们\n".encode() + "中国 人".encode("gbk") + b"\n")
    with pytest.raises(ValueError, match=r"text.txt:3: needs UTF-8 text. Received: byte 0xd6 at byte 1 of the line"):
        read_segmented(path)


@given(st.integers(2, 60), st.floats(0.01, 0.99), st.integers(0, 5))
def test_a_split_loses_nothing_keeps_the_order_and_repeats(count, fraction, seed):
    items = list(range(count))
    rest, held_out = split(items, fraction, seed)
    assert sorted(rest + held_out) == items and rest == sorted(rest) and held_out == sorted(held_out)
    assert len(held_out) == min(max(1, round(fraction * count)), count - 1)
    assert split(items, fraction, seed) == (rest, held_out)


def test_seeds_draw_different_parts_and_impossible_splits_are_refused():
    assert len({tuple(split(list(range(100)), 0.1, seed)[1]) for seed in range(5)}) == 5
    with pytest.raises(ValueError, match="two sentences or more and 0 < fraction < 1. Received: 1 sentences"):
        split([["a"]])


def test_the_built_in_corpus_has_the_promised_size_and_no_repetition():
    corpus = load_mini()
    sentences = corpus.train + corpus.valid + corpus.test
    counts = [(len(part), sum(map(len, part))) for part in (corpus.train, corpus.valid, corpus.test)]
    assert counts == [(1053, 22131), (129, 2586), (129, 2764)]
    texts = Counter("".join(words) for words in sentences)
    assert max(texts.values()) == 1
    assert max(Counter(text[:5] for text in texts).values()) <= 3
    known = {word for words in corpus.train for word in words}
    test = [word for words in corpus.test for word in words]
    assert 0.15 < sum(word not in known for word in test) / len(test) < 0.25


def test_the_built_in_corpus_has_what_real_text_has():
    corpus = load_mini()
    text = "".join(word for part in (corpus.train, corpus.valid, corpus.test) for words in part for word in words)
    for characters in ("0123456789", "０１２３４５６７８９", "ABDN", "，。；：？！、（）《》“”"):
        assert set(characters) <= set(text)
    assert len(set(text)) > 2500


def test_the_figures_in_the_corpus_readme_are_true():
    readme = (Path(__file__).parents[1] / "kcrf/data/README.md").read_text(encoding="utf-8")
    corpus = load_mini()
    for name in ("train", "valid", "test"):
        part = getattr(corpus, name)
        assert f"| `mini_{name}.txt` | {len(part):,} | {sum(map(len, part)):,} |" in readme

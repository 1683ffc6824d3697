"""kcrf.corpora.dictionary: A user's list of words: what a line may be, and what is refused."""

import pytest

from kcrf.corpora.dictionary import read_user_dictionary

BACKENDS = ["torch"]


def test_words_with_counts_and_word_classes(tmp_path):
    path = tmp_path / "words.txt"
    path.write_bytes("\ufeff云计算 5 n\r\n\r\n石墨烯\r\n3D打印\tn\r\n云计算 7\r\n".encode())
    expected = {"云计算": (7, None), "石墨烯": (None, None), "3D打印": (None, "n")}
    assert read_user_dictionary(path) == expected
    path.write_text("云计算 5 n\n石墨烯 v\n3D打印 3\n天\n", encoding="utf-8")
    expected = {"云计算": (5, "n"), "石墨烯": (None, "v"), "3D打印": (3, None), "天": (None, None)}
    assert read_user_dictionary(path) == expected


@pytest.mark.parametrize(
    "text, message",
    [
        ("云计算\n石墨烯 0\n", r":2: needs a word, its count and its word class at most. Received: '石墨烯 0'"),
        ("云 计 算\n", r":1: needs a word, its count and its word class at most. Received: '云 计 算'"),
        ("云 5 n v\n", r":1: needs"),
        ("云 -1\n", ":1: needs a word, its count and its word class at most"),
        ("云 2.5\n", ":1: needs a word, its count and its word class at most"),
        ("云/n\n计算/v\n", ":1: needs spaces between a word, its count and its class. Received: '云/n'"),
        ("云_n\n计算_v\n", ":1: needs spaces between"),
        ("云:20\n计算=3\n", ":1: needs spaces between"),
        (" \n\n", r"needs one word per line. Received: a file without words"),
    ],
)
def test_other_lines_are_refused(tmp_path, text, message):
    path = tmp_path / "words.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message) as error:
        read_user_dictionary(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    "text", ["天气真,20,n\n图书馆,5\n", "天气真|20|n\n", "天气真;3\n", '{"天气真": 20}\n', '["天气真", "图书馆"]\n']
)
def test_other_separators_are_refused(tmp_path, text):
    """They had no effect: no text has the word 天气真,20,n."""
    (tmp_path / "words").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="words:1: needs spaces between a word, its count and its class. Received: "):
        read_user_dictionary(tmp_path / "words")
    (tmp_path / "words").write_text("1,000\n天气真 20 n\nAT&T\n", encoding="utf-8")
    assert list(read_user_dictionary(tmp_path / "words")) == ["1,000", "天气真", "AT&T"]

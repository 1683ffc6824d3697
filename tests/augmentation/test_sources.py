"""kcrf.augmentation: The sources of other words for augmentation: dictionaries, word vectors, a translator."""

import shutil

import numpy as np
import pytest

from kcrf.augmentation import read_synonyms
from kcrf.augmentation.synonyms import read_synonym_vectors
from kcrf.augmentation.translation import back_translate
from kcrf.corpora import Example

BACKENDS = ["torch"]


def test_a_dictionary_has_a_group_a_line_also_as_cilin_writes_it(tmp_path):
    path = tmp_path / "synonyms.txt"
    path.write_text(
        "Aa01A01= 人 士 人物\nAa01A02# 人类 生人\nBa02@ 天\n\n好 不错\nice cream\tgelato\n", encoding="utf-8"
    )
    synonyms = read_synonyms(path)
    assert synonyms.of("人") == ("士", "人物") and synonyms.of("好") == ("不错",)
    assert synonyms.of("gelato") == ("ice cream",) and synonyms.longest == len("ice cream")
    assert not any(word in synonyms for word in ("人类", "天", "Aa01A01=", "ice"))
    path.write_text("好\n坏\n", encoding="utf-8")
    with pytest.raises(ValueError, match="synonyms.txt: needs lines with two or more synonyms"):
        read_synonyms(path)


def test_the_nearest_words_are_those_of_the_largest_cosine(tmp_path):
    random = np.random.default_rng(0)
    words, vectors = [f"w{i}" for i in range(60)], random.normal(size=(60, 3)).round(4)
    path = tmp_path / "vectors.txt"
    rows = [f"{word} {' '.join(map(str, row))}" for word, row in zip(words, vectors.tolist())]
    path.write_text("\n".join(["60 3", *rows]), encoding="utf-8")
    synonyms = read_synonym_vectors(path)
    for own in range(60):
        cosines = [a @ vectors[own] / np.linalg.norm(a) / np.linalg.norm(vectors[own]) for a in vectors]
        order = sorted((i for i in range(60) if i != own and cosines[i] >= 0.6), key=lambda i: -cosines[i])
        assert synonyms.of(words[own]) == tuple(words[i] for i in order[:10])
    assert synonyms.of("W3")[0] == synonyms.of("w3")[0].upper() and synonyms.of("absent") == ()
    assert "w9" not in read_synonym_vectors(path, most=9)
    path.write_text("a 1 2\nb 1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="vectors.txt:2: needs a word and 2 numbers. Received: 'b 1"):
        read_synonym_vectors(path)


EXAMPLES = [Example("a fine\nfilm", "good", source="f:1"), Example("dull", "bad", "a b"), Example("z", "bad")]


def test_a_translator_gets_each_text_as_a_line_and_blank_or_equal_ones_are_left_out():
    copies = back_translate(EXAMPLES, "tr ab AB | sed s/z//")
    assert copies == [[Example("A fine film", "good")], [Example("dull", "bad", "A B")], []]
    assert copies[0][0].source == "f:1"
    assert back_translate(EXAMPLES[2:], "cat") == [[]]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("head -n 3", "must write one line .* Received: 3 lines for 4 lines of input of 'head -n 3'"),
        ("cat; echo", "Received: 5 lines for 4"),
        ("cat; exit 3", "must exit with status 0. Received: status 3 of 'cat; exit 3'"),
        pytest.param(
            "(cat; exit 3) | cat",
            "must exit with status 0. Received: status 3",
            marks=pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash"),
        ),
        ("printf '\\377\\n%.0s' 1 2 3 4", "the output of .*:1: needs UTF-8 text"),
    ],
)
def test_a_translator_that_fails_or_loses_lines_is_refused(command, message):
    with pytest.raises(ValueError, match=message):
        back_translate(EXAMPLES, command)


def test_half_of_a_surrogate_pair_is_refused_with_its_place():
    examples = [EXAMPLES[0], Example("dull", "bad", "b\ud800", source="f:2")]
    with pytest.raises(ValueError, match=r"f:2: needs text in UTF-8. Received: half of a surrogate pair, '\\ud800'"):
        back_translate(examples, "cat")

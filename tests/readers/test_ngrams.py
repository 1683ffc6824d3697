"""Tests of kcrf.readers.code_points, kcrf.readers.ngrams.

N-gram features: the hash beside plain integers, batches beside single texts, and what counts as the same.
"""

from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcrf.readers import CharacterNGrams, WordNGrams
from kcrf.readers.code_points import TYPES, character_type
from kcrf.readers.ngrams import buckets_of
from kcrf.readers.vocabulary import fold

BACKENDS = ["torch"]

FACTORS = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F)


def hashed(values, number, buckets):
    """The hash with Python's integers."""
    if 0 in values:
        return 0
    total = sum(value * factor for value, factor in zip(values, FACTORS)) + number * 0x165667B1
    total %= 2**32
    total = ((total ^ (total >> 15)) * 0x85EBCA6B) % 2**32
    return max(1, total * buckets >> 32)


def expected(text, ngrams):
    """The features of a text, one position and one template at a time."""
    characters = ["\n", "\n", *text, "\n", "\n"]
    columns = {
        "c": [1 + ord(fold(c)) for c in characters],
        "t": [1 + TYPES.index(character_type(c)) for c in characters],
    }
    rows = []
    for position in range(2, 2 + len(text)):
        places = [[(part[0], int(part[1:])) for part in template.split()] for template in ngrams.templates]
        values = [[columns[name][position + offset] for name, offset in template] for template in places]
        rows.append([hashed(value, number, ngrams.buckets) for number, value in enumerate(values)])
    return np.array(rows, int).reshape(len(text), ngrams.width)


@given(st.lists(st.text(st.sampled_from("天地Ａa１2。∶, \n\x00\ud800😀"), max_size=12), min_size=1, max_size=4))
def test_every_feature_is_the_hash_of_its_values(texts):
    ngrams = CharacterNGrams(2**12)
    for text, rows in zip(texts, ngrams.encode(texts), strict=True):
        np.testing.assert_array_equal(rows, expected(text, ngrams))


@pytest.mark.parametrize("buckets", [2, 2**10, 2**31])
def test_buckets_are_all_used_and_none_is_0(buckets):
    text = "".join(map(chr, range(0x4E00, 0x4E00 + 4096)))
    rows = CharacterNGrams(buckets, ["c0"]).encode([text])[0]
    assert 1 <= rows.min() and rows.astype("int64").max() < buckets
    assert len(np.unique(rows)) >= min(buckets - 1, 4096) * 0.9


def test_width_and_case_are_folded_and_all_digits_are_one():
    first, second = CharacterNGrams(2**16).encode(["Ａ７，天", "a3,天"])
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("sign", "。．.，,：:∶；、！!？?“”（(）)《》…—～·％%＋=＄【】｡")
def test_signs_of_every_script_and_width_are_one_type(sign):
    assert character_type(sign) == "sign"


def test_templates_that_do_not_exist_are_refused():
    for template in ("", "c", "c3", "x0", "c0 c1 c2 c-1 c-2", "c0-c1"):
        with pytest.raises(ValueError, match="templates?"):
            CharacterNGrams(2**10, [template])
    with pytest.raises(ValueError, match="power of two"):
        CharacterNGrams(1000)


def test_words_have_the_features_of_their_neighbors():
    ngrams = WordNGrams(2**20, ["w-1", "p20", "w0 w1", "s1-1"])
    (rows,) = ngrams.encode([["In", "Leeds"]])
    of = {text: crc32(text.encode()) | 1 for text in ("in", "leeds", "le-", "-n")}
    first = [hashed([1], 0, 2**20), 0, hashed([of["in"], of["leeds"]], 2, 2**20), 0]
    second = [hashed([of["in"]], 0, 2**20), hashed([of["le-"]], 1, 2**20), hashed([of["leeds"], 1], 2, 2**20)]
    assert rows.tolist() == [first, [*second, hashed([of["-n"]], 3, 2**20)]]


@given(st.lists(st.lists(st.text("aB1-.é", min_size=1, max_size=6), max_size=5), min_size=1, max_size=4))
def test_a_batch_of_words_equals_its_sentences_one_by_one(sentences):
    ngrams = WordNGrams(2**12)
    for words, rows in zip(sentences, ngrams.encode(sentences), strict=True):
        assert rows.shape == (len(words), ngrams.width)
        np.testing.assert_array_equal(rows, ngrams.encode([words])[0])


def test_case_digits_and_hyphens_are_seen():
    ngrams = WordNGrams(2**20, ["k0"])
    words = ["Leeds", "leeds", "LEEDS", "1998", "b2b", "a-b", "a.b"]
    assert len({int(ngrams.encode([[word]])[0][0, 0]) for word in words}) == len(words)


def test_features_come_back_from_their_configuration():
    ngrams = CharacterNGrams(2**12, ["c0", "t-1 t0"])
    again = CharacterNGrams.from_config(ngrams.get_config())
    np.testing.assert_array_equal(ngrams.encode(["天a"])[0], again.encode(["天a"])[0])
    assert [buckets_of(n) for n in (1, 40_000, 10**7)] == [2**16, 2**18, 2**19]

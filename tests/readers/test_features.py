"""kcrf.readers: windows cover the text, vocabularies number it, batches hold it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcrf.readers import Vocabulary
from kcrf.readers.padding import BUCKETS, bucket, pad
from kcrf.readers.vocabulary import fold
from kcrf.readers.windows import windows

BACKENDS = ["torch"]

texts = st.text(st.sampled_from("天地人。，a"), max_size=300)


@given(texts, st.integers(6, 40), st.integers(0, 2))
def test_windows_fit_the_limit_and_their_kept_parts_are_the_text(text, limit, overlap):
    found = windows(text, limit, overlap)
    kept = 0
    for start, end, keep_start, keep_end in found:
        assert 0 <= start <= keep_start < keep_end <= end <= len(text) and end - start <= limit
        assert keep_start == kept
        kept = keep_end
    assert kept == len(text)


def test_windows_cut_at_sentence_ends_before_pauses_before_anything():
    assert [w[:2] for w in windows("天天天。天，天天天天", limit=8, overlap=2)] == [(0, 6), (6, 10)]
    assert [w[:2] for w in windows("天天天天天。，天天天天", limit=8, overlap=2)] == [(0, 6), (6, 11)]


def test_a_full_stop_before_white_space_ends_a_sentence_and_a_decimal_point_does_not():
    assert [w[:2] for w in windows("It is 1.5 km. Go on, then.", limit=16, overlap=2)] == [(0, 13), (13, 26)]
    text = "This is a sentence about the town of Leeds. " * 8
    assert all(text[start:end].strip().endswith("Leeds.") for start, end, *_ in windows(text))


def test_windows_without_a_place_to_cut_overlap():
    assert windows("天" * 10, limit=6, overlap=2) == [(0, 6, 0, 5), (4, 10, 5, 10)]


def test_a_short_text_is_one_window_and_an_empty_one_none():
    assert windows("天地") == [(0, 2, 0, 2)]
    assert windows("") == []


@pytest.mark.parametrize(
    ("character", "folded"),
    [("Ａ", "a"), ("９", "0"), ("3", "0"), ("㎏", "㎏"), ("ﬁ", "ﬁ"), ("\ud800", "\ud800"), ("，", ",")],
)
def test_folding_keeps_one_character_for_one(character, folded):
    assert fold(character) == folded


@given(st.text(max_size=40))
def test_every_character_gets_one_number_of_each_kind(text):
    vocabulary = Vocabulary.of([text[::2]], min_bigrams=1)
    characters, bigrams = vocabulary.encode(text)
    assert len(characters) == len(bigrams) == len(text)
    assert all(
        0 < number < size for row, size in zip((characters, bigrams), vocabulary.sizes, strict=True) for number in row
    )


def test_rare_items_are_unknown():
    vocabulary = Vocabulary.of(["天天天", "天地"], min_characters=2, min_bigrams=2)
    assert (vocabulary.characters, vocabulary.bigrams) == (["天"], ["天天"])
    assert vocabulary.encode("天天地") == ([2, 2, 1], [2, 1, 1])


def test_a_grown_vocabulary_keeps_its_numbers():
    vocabulary = Vocabulary(["天", "地"], ["天地"])
    grown = vocabulary.grown(["人人天", "人人大"], min_bigrams=2)
    assert (grown.characters, grown.bigrams) == (["天", "地", "人", "大"], ["天地", "人人"])
    assert grown.encode("天地人人") == ([2, 3, 4, 4], [2, 1, 3, 1])
    assert vocabulary.encode("天地人人") == ([2, 3, 1, 1], [2, 1, 1, 1])


def test_padding_fills_on_the_right_and_buckets_are_the_next_length():
    assert pad([[1, 2], []], 3, value=-1).tolist() == [[1, 2, -1], [-1, -1, -1]]
    assert pad([[1]], 2).dtype == np.int32
    assert [bucket(n) for n in (1, 8, 9, 128)] == [8, 8, 16, 128]
    assert list(BUCKETS) == sorted(BUCKETS)

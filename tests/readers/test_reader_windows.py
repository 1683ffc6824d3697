"""kcrf.readers.windows: Texts and pairs that are read as a whole: special tokens, segments, what is cut off."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcrf.readers import CharacterReader, PieceReader, Vocabulary
from kcrf.readers.windows import bounds_of_parts, cut_pair

BACKENDS = ["torch"]

VOCABULARY = {token: i for i, token in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "##b"])}


def inputs(reader, *texts, max_length=128):
    reading = reader.read_texts([(*texts, None)[:2]], max_length)[0]
    assert reading.units.shape == (0, 2) and len(reading.windows) == 1
    return reading.windows[0].inputs


def test_a_pair_has_the_form_that_bert_was_pretrained_with():
    reader = PieceReader({"max_position_embeddings": 512}, VOCABULARY, True)
    assert inputs(reader, "a ab") == {"Input-Token": [2, 4, 4, 6, 3], "Input-Segment": [0] * 5}
    assert inputs(reader, "a", "b a") == {"Input-Token": [2, 4, 3, 5, 4, 3], "Input-Segment": [0, 0, 0, 1, 1, 1]}
    assert inputs(reader, "") == {"Input-Token": [2, 3], "Input-Segment": [0, 0]}
    assert inputs(PieceReader({"type_vocab_size": 0}, VOCABULARY, True), "a") == {"Input-Token": [2, 4, 3]}


@pytest.mark.parametrize(
    ("positions", "limit", "length"), [(512, 128, 128), (512, 512, 512), (100, 512, 96), (512, 9, 9)]
)
def test_a_long_text_is_cut_to_what_fits(positions, limit, length):
    reader = PieceReader({"max_position_embeddings": positions}, VOCABULARY, True)
    tokens = inputs(reader, "a " * 600, max_length=limit)["Input-Token"]
    assert len(tokens) == length and tokens[0] == 2 and tokens[-1] == 3 and set(tokens[1:-1]) == {4}
    pair = inputs(reader, "a " * 600, "b b", max_length=limit)
    assert len(pair["Input-Token"]) == length and pair["Input-Token"][-4:] == [3, 5, 5, 3]
    assert sum(pair["Input-Segment"]) == 3


@given(st.integers(0, 30), st.integers(0, 30), st.integers(1, 40))
def test_of_a_pair_the_longer_is_cut_first(first, second, room):
    """One item at a time is taken off the longer one, until both fit."""
    expected = [first, second]
    while sum(expected) > room:
        expected[expected.index(max(expected))] -= 1
    found = list(map(len, cut_pair("a" * first, "b" * second, room)))
    assert sum(found) == sum(expected) and all(abs(a - b) <= 1 for a, b in zip(found, expected))


def test_characters_of_a_pair_have_a_line_end_between_them():
    reader = CharacterReader(Vocabulary(["a", "b", "\n"], []))
    assert inputs(reader, "ab", "b")["characters"] == [2, 3, 4, 3]
    assert inputs(reader, "a" * 10, "b" * 10, max_length=8)["characters"] == [2] * 4 + [4] + [3] * 3
    assert inputs(reader, "")["characters"] == []


@given(st.text("ab。 .", max_size=90), st.integers(1, 40))
def test_the_windows_of_a_whole_text_contain_all_of_it_and_begin_with_what_is_learned(text, limit):
    (first, *others), covered = bounds_of_parts(text, limit, whole=True), set()
    assert [first] == bounds_of_parts(text, limit, whole=False) and first == (0, min(limit, len(text)))
    for start, end in (first, *others):
        assert 0 < end - start <= limit or not text
        covered.update(range(start, end))
    assert covered == {*range(len(text))} and bool(others) == (len(text) > limit)


def test_pieces_and_characters_of_long_texts_are_read_in_windows():
    text = "ab a. " * 30
    pieces = PieceReader({"max_position_embeddings": 512}, VOCABULARY, True)
    windows = pieces.read_texts([(text, None)], 16, whole=True)[0].windows
    assert windows[0].inputs == inputs(pieces, text, max_length=16) and len(windows) > 5
    for window in windows:
        ids = window.inputs["Input-Token"]
        assert ids[0] == 2 and ids[-1] == 3 and len(ids) <= 16 and len(window.inputs["Input-Segment"]) == len(ids)
    characters = CharacterReader(Vocabulary(["a", "b"], []))
    assert len(characters.read_texts([(text, None)], 16, whole=True)[0].windows) > len(text) / 16
    assert len(characters.read_texts([(text, text)], 16, whole=True)[0].windows) == 1


@pytest.mark.parametrize("size", [6, 7, 8, 9, 10])
@pytest.mark.parametrize("whole", [False, True])
def test_texts_are_cut_if_they_are_longer_than_the_positions(size, whole):
    characters = CharacterReader(Vocabulary(["a", "\n"], []))
    pieces = PieceReader({"max_position_embeddings": 512}, VOCABULARY, True)
    of_characters = characters.read_texts([("a" * size, None), ("a" * (size - 4), "aaa")], 8, whole)
    assert [reading.is_cut for reading in of_characters] == [size > 8 and not whole, size > 8]
    of_pieces = pieces.read_texts(
        [("a " * (size - 2), None), ("a " * (size - 5), "a a")], 8, whole
    )  # with [CLS], [SEP]
    assert [reading.is_cut for reading in of_pieces] == [size > 8 and not whole, size > 8]

"""kcrf.readers.lexicon: counts and features beside their definitions; a sentence does not see its own words."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcrf.corpora import Sentence
from kcrf.readers import CharacterReader, Lexicon, Vocabulary
from kcrf.readers.code_points import code_points, folded_characters
from kcrf.readers.lexicon import LENGTHS, cross_fitted
from kcrf.readers.padding import pad

BACKENDS = ["torch"]


def sentence(words):
    """The `Sentence` of a string of words."""
    spans, start = [], 0
    for word in words.split():
        spans.append((start, start + len(word)))
        start += len(word)
    return Sentence(words.replace(" ", ""), spans)


texts = st.lists(st.lists(st.text("天地人7Ａ", min_size=1, max_size=6), min_size=1, max_size=8), max_size=12).map(
    lambda rows: [sentence(" ".join(words)) for words in rows]
)


def occurrences(string, text):
    return sum(text[i : i + len(string)] == string for i in range(len(text)))


def folded(text):
    return text.replace("7", "0").replace("Ａ", "a")


def by_definition(counted, text):
    """The features of a text: for each length the kind of the word that begins, then of the one that ends."""
    rows = []
    for place in range(len(text)):
        row = []
        for begins in (True, False):
            for length in LENGTHS:
                start = place if begins else place - length + 1
                string = folded(text[max(start, 0) : start + length])
                words = sum(folded(s.text[a:b]) == string for s in counted for a, b in s.spans)
                number = 0
                if len(string) == length and words:
                    share = words / sum(occurrences(string, folded(s.text)) for s in counted)
                    often = 0 if words == 1 else 1 if words < 5 else 2
                    number = len(row) * 12 + 1 + 4 * often + sum(share >= bound for bound in (0.1, 0.5, 0.9))
                row.append(number)
        rows.append(row)
    return rows


@given(texts, st.text("天地人7Ａ", max_size=9))
def test_features_say_how_often_and_in_which_share_of_its_occurrences_a_string_was_a_word(counted, text):
    encoded = Lexicon.of(counted).encode(text)
    assert encoded.shape == (len(text), Lexicon.width) and encoded.max(initial=0) < Lexicon.size
    assert encoded.tolist() == by_definition(counted, text)


@given(texts)
def test_each_sentence_is_read_with_the_words_of_the_other_four_fifths(sentences):
    pairs = list(cross_fitted(Lexicon.of(sentences), sentences))
    assert [s for s, _ in pairs] == sentences
    cuts = [len(sentences) * i // 5 for i in range(6)]
    for number, (s, lexicon) in enumerate(pairs):
        start, stop = next((a, b) for a, b in zip(cuts, cuts[1:]) if a <= number < b)
        others = sentences[:start] + sentences[stop:]
        assert lexicon.encode(s.text).tolist() == by_definition(others, s.text)


def test_altered_copies_are_read_with_the_words_of_the_other_four_fifths_too():
    part = [sentence(f"北京 很 大 {c}间") for c in "天地人"]
    copies = [[sentence("天间 大 北京")], [], [sentence("大 天间 人间"), sentence("人间")]]
    lexicon = Lexicon.of(part)
    pairs = list(cross_fitted(lexicon, part, copies))
    assert [s for s, _ in pairs] == [part[0], *copies[0], part[1], part[2], *copies[2]]
    for number, (s, others) in zip([0, 0, 1, 2, 2, 2], pairs, strict=True):
        assert others.encode(s.text).tolist() == by_definition(part[:number] + part[number + 1 :], s.text)
    reader = CharacterReader(Vocabulary.of([s.text for s in part]), lexicon)
    readings = reader.read_training(part, copies)
    for (s, others), reading in zip(pairs, readings, strict=True):
        np.testing.assert_array_equal(reading.windows[0].inputs["words"], others.encode(s.text))


def test_a_word_of_one_sentence_is_unknown_in_training_and_known_afterwards():
    part = [sentence("北京 很 大"), sentence("上海 很 大")]
    reader = CharacterReader(Vocabulary.of([s.text for s in part]), Lexicon.of(part))
    for s in part:
        assert reader.read([s.text])[0].windows[0].inputs["words"][0, 0] > 0
    assert not any(reading.windows[0].inputs["words"].any() for reading in reader.read_training(part))


def test_windows_hold_the_features_of_their_stretch_of_the_text():
    part = [sentence("天地 人 " * 60)]
    reader = CharacterReader(Vocabulary.of([part[0].text]), Lexicon.of(part))
    (reading,) = reader.read([part[0].text])
    whole = reader.lexicon.encode(part[0].text)
    assert len(reading.windows) > 1
    for window in reading.windows:
        words = window.inputs["words"]
        assert np.array_equal(words, whole[window.first : window.first + len(words)])
    assert pad([window.inputs["words"] for window in reading.windows], 128).shape == (2, 128, Lexicon.width)


def test_a_lexicon_is_the_same_after_a_round_trip_through_json():
    part = [sentence("北京 大学 2008年"), sentence("北京 大 学")]
    reader = CharacterReader(Vocabulary.of([s.text for s in part]), Lexicon.of(part))
    content = json.loads(json.dumps(reader.get_config()))
    back = CharacterReader.from_config(content)
    assert (back.lexicon.words, back.lexicon.strings) == (reader.lexicon.words, reader.lexicon.strings)
    for words, strings in [({"北京": 3}, {"北京": 2}), ({"北京": 1}, {}), ({"北京": "1"}, {"北京": 2}), ([], {})]:
        with pytest.raises(ValueError, match="needs words and strings with their counts. Received: "):
            CharacterReader.from_config({**content, "words": words, "strings": strings})


@pytest.mark.slow
@given(st.text("天地人a１", max_size=30), st.integers(0, 2**32))
def test_the_longest_words_are_the_last_that_the_features_have(text, seed):
    random = np.random.default_rng(seed)
    strings = {text[i : i + n] for i in range(len(text)) for n in LENGTHS if len(text[i : i + n]) == n}
    lexicon = Lexicon({}, {}).with_words({word: int(random.integers(1, 9)) for word in strings if random.integers(2)})
    begins, ends = lexicon.longest(folded_characters(code_points(text)))
    features = lexicon.encode(text)
    np.testing.assert_array_equal(begins, features[:, : len(LENGTHS)].max(axis=1, initial=0))
    np.testing.assert_array_equal(ends, features[:, len(LENGTHS) :].max(axis=1, initial=0))

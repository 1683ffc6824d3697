"""kcrf.readers of words: tokens of a text, features of words, and the choice between words and characters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcrf.corpora import Sentence, load_mini
from kcrf.corpora.conll import join_tokens, read_conll_tokens
from kcrf.readers import WordReader, WordVocabulary, spans_of_units, tags_of_units
from kcrf.readers.word_tokens import choose_units, entities_that_cut_tokens, shape_of, splits_of, token_spans
from kcrf.readers.words import SPELLING
from kcrf.tags import bio, bioes

BACKENDS = ["torch"]

TOKENS = {  # texts with blanks where tokens begin
    "Germany's U.N. team didn't pay $1,000 (O'Brien).": "Germany 's U.N. team did n't pay $ 1,000 ( O'Brien ) .",
    "The U.S.-led 3.5-litre U.S.": "The U.S.-led 3.5-litre U.S.",
    "He can't; I'm well-known at AT&T...": "He ca n't ; I 'm well-known at AT&T ...",
    "Don’t, it’s 5pm": "Do n’t , it ’s 5pm",
    "Mr. J. Smith of Apple Inc. ran 3.5 miles.": "Mr. J. Smith of Apple Inc. ran 3.5 miles .",
    "On 1996-08-22 a.b@c.com saw http://x.y/z?q=1.": "On 1996-08-22 a.b@c.com saw http://x.y/z?q=1 .",
    "@kim #WNUT17 !! \u201cok\u201d": "@kim #WNUT17 ! ! \u201c ok \u201d",
    "李雷在New York。": "李 雷 在 New York 。",
    "cafe\u0301 --- हिन्दी। ไทย": "cafe\u0301 --- हिन्दी । ไ ท ย",
    "do n't 's": "do n't 's",
}
some_text = st.text(st.sampled_from("aBé7 .,'’-n'ts&@#/:$\t\n\u3000李ไ\u0301\ud800"), max_size=60)


@pytest.mark.parametrize("text", TOKENS)
def test_tokens_are_those_of_english_corpora(text):
    assert [text[start:end] for start, end in token_spans(text)] == TOKENS[text].split(" ")


@given(some_text, st.sampled_from(["", "-", "-."]))
def test_tokens_are_the_text_without_its_white_space(text, splits):
    spans = token_spans(text, splits).tolist()
    assert all(start < end for start, end in spans)
    assert all(before[1] <= behind[0] for before, behind in zip(spans, spans[1:]))
    covered = {i for start, end in spans for i in range(start, end)}
    assert covered == {i for i, character in enumerate(text) if not character.isspace()}
    assert all(end - start == 1 for start, end in spans if set(text[start:end]) & set(splits))


@given(some_text, st.data())
def test_entities_of_whole_tokens_come_back_from_their_tags(text, data):
    reader = WordReader(WordVocabulary.of([]))
    (reading,) = reader.read([text])
    cuts = sorted(data.draw(st.sets(st.integers(0, len(reading.units)))))
    inside = list(zip(cuts, cuts[1:]))[::2]  # in tokens, apart
    spans = [(int(reading.units[a, 0]), int(reading.units[b - 1, 1]), "PER") for a, b in inside]
    for scheme in (bio(["PER"]), bioes(["PER"])):
        tags = tags_of_units(scheme, reading.units, spans)
        assert -1 not in tags
        assert spans_of_units(scheme, reading.units, scheme.decode(tags), len(text)) == spans


@given(some_text, st.lists(st.integers(0, 2), max_size=60))
def test_whatever_the_tags_an_entity_never_cuts_a_word(text, tags):
    scheme, reader = bio(["PER"]), WordReader(WordVocabulary.of([]))
    (reading,) = reader.read([text])
    tags = np.resize(tags or [0], len(reading.units)).tolist()
    for start, end, _ in spans_of_units(scheme, reading.units, scheme.decode(tags), len(text)):
        assert start in reading.units[:, 0] and end in reading.units[:, 1]


def test_the_shape_of_a_word():
    words = ["Leeds", "NASA", "McCoy", "iPhone", "1,998", "U.S.", "a", "I", "北京", "..."]
    shapes = ["Xxx", "XX", "XxXxx", "xXxx", "d,dd", "X.X.", "x", "X", "xx", ".."]
    assert [shape_of(word) for word in words] == shapes


def test_a_word_is_read_as_number_characters_shape_prefixes_and_suffixes():
    vocabulary = WordVocabulary.of(["Run", "run", "RUN", "ran", "x7"], min_words=2, min_characters=2, min_features=2)
    assert vocabulary.words == ["run"] and set(vocabulary.characters) == set("Rrun")
    assert set(vocabulary.features) == {"=xx", "r-", "ru-", "-n", "-un"}
    encoded = vocabulary.encode(["Run", "nun", "x" * 20])
    assert encoded["tokens"].tolist() == [2, 1, 1]
    numbers = {c: i for i, c in enumerate(vocabulary.characters, 2)}
    assert encoded["spelling"][0].tolist() == [numbers["R"], numbers["u"], numbers["n"]] + [0] * (SPELLING - 3)
    assert encoded["spelling"][2].tolist() == [1] * SPELLING
    features = {f: i for i, f in enumerate(vocabulary.features, 2)}
    known = [1, features["r-"], features["ru-"], 0, 0, features["-n"], features["-un"], 0, 0]  # a shape not seen often
    assert encoded["features"][0].tolist() == known
    assert encoded["features"][1].tolist() == [features["=xx"], 1, 1, 0, 0, features["-n"], features["-un"], 0, 0]


def test_a_grown_vocabulary_keeps_its_numbers():
    vocabulary = WordVocabulary(["run"], ["r"], ["-n"])
    grown = vocabulary.grown(["nun", "nun", "nun", "Run", "six"])
    assert grown.words == ["run", "nun"] and grown.characters == ["r", "n", "u"]
    assert grown.features[:1] == ["-n"] and {*grown.features[1:]} == {"=xx", "n-", "nu-", "-un"}
    words = ["run", "nun"]
    assert grown.encode(words)["tokens"].tolist() == [2, 3]
    assert vocabulary.encode(words)["tokens"].tolist() == [2, 1]


def test_a_long_word_is_read_by_its_first_and_last_characters():
    vocabulary = WordVocabulary.of(["abcdefghijklmnopqrstuvwxyz"], min_characters=1)
    (row,) = vocabulary.encode(["abcdefghijklmnopqrstuvwxyz"])["spelling"]
    assert "".join(vocabulary.characters[i - 2] for i in row) == "abcdefghstuvwxyz"


def test_capitals_are_other_inputs_and_the_same_word():
    reader = WordReader(WordVocabulary.of("Turkey lies in Turkey , turkey lies in the oven".split(), 1, 1, 1))
    as_it_is, lowered = (reader.read([text])[0].windows[0].inputs for text in ("Turkey in Turkey", "turkey in turkey"))
    assert as_it_is["tokens"].tolist() == lowered["tokens"].tolist()
    for name in ("spelling", "features"):
        differs = (as_it_is[name] != lowered[name]).any(1)
        assert differs.tolist() == [True, False, True]


def test_a_long_text_is_cut_into_windows_behind_full_stops():
    text = "It is a sentence about the town of Leeds. " * 40
    (reading,) = WordReader(WordVocabulary.of([])).read([text])
    assert [i for w in reading.windows for i in range(*w.keep)] == list(range(len(reading.units))) and len(
        reading.windows
    ) > 2
    for window in reading.windows:
        start, stop = window.keep
        assert text[slice(reading.units[start, 0], reading.units[stop - 1, 1])].endswith("Leeds.")
        assert {len(row) for row in window.inputs.values()} == {stop - start}


def test_given_tokens_are_the_units_and_a_text_without_them_is_cut():
    reader = WordReader(WordVocabulary.of([]))
    tokens = [(0, 2), (2, 5)]
    with_tokens, without = reader.read(["ab cd", "ab cd"], [tokens, []])
    assert with_tokens.units.tolist() == [list(span) for span in tokens]
    assert without.units.tolist() == [[0, 2], [3, 5]]
    assert [len(reading.windows) for reading in reader.read(["", " \n"])] == [0, 0]


def test_texts_read_together_are_read_as_alone():
    reader, texts = WordReader(WordVocabulary.of("a b c".split(), 1, 1, 1)), ["a b", "", "b c a", "c"]
    for text, reading in zip(texts, reader.read(texts), strict=True):
        (alone,) = reader.read([text])
        assert reading.units.tolist() == alone.units.tolist() and len(reading.windows) == len(alone.windows)
        for window, other in zip(reading.windows, alone.windows):
            assert {name: row.tolist() for name, row in window.inputs.items()} == {
                name: row.tolist() for name, row in other.inputs.items()
            }


def test_words_or_characters_by_the_data():
    english = [Sentence("Kim lives in Leeds.", [(0, 3, "PER")])] * 3
    assert choose_units(english) == "words"
    assert choose_units(load_mini("ner").train) == "characters"
    assert choose_units([*load_mini("ner").train, *english]) == "characters"
    one_by_one = [Sentence("Kim", [(0, 3, "PER")], [(0, 1), (1, 2), (2, 3)])]
    assert choose_units(one_by_one) == "characters"
    chinese_words = [Sentence("中华人民共和国外交部", [(0, 7, "LOC")], [(0, 7), (7, 10)])]
    assert choose_units(chinese_words) == "characters"
    assert choose_units([Sentence(" ", [(0, 1, "LOC")])]) == "characters"
    inside = [Sentence("inLeeds", [(2, 7, "LOC")])]  # as in Korean, whose particles stand at the ends of names
    assert choose_units(inside) == choose_units([Sentence("!", [])]) == "characters"


def test_words_are_cut_at_the_punctuation_where_entities_end():
    sentences = [Sentence("U.S.-led well-off", [(0, 4, "LOC")]), Sentence("pro-UN", [(4, 6, "ORG")])]
    assert splits_of(sentences) == "-"
    assert entities_that_cut_tokens(sentences) == ["U.S.", "UN"] and entities_that_cut_tokens(sentences, "-") == []
    reader = WordReader.of(sentences)
    assert [("well-off")[a - 9 : b - 9] for a, b in reader.read([sentences[0].text])[0].units[-3:]] == [
        "well",
        "-",
        "off",
    ]
    rare = [*sentences, *[Sentence("Leeds", [(0, 5, "LOC")])] * 2000]
    assert splits_of(rare) == ""
    inside = [Sentence("Londoners", [(0, 6, "LOC")])]
    assert splits_of(inside) == "" and entities_that_cut_tokens(inside) == ["London"]


def test_a_reader_is_made_again_from_its_configuration():
    reader = WordReader.of([Sentence("UN-led UN forces", [(0, 2, "ORG")])])
    again = WordReader.from_config(reader.get_config())
    (one,), (other,) = reader.read(["the UN-led"]), again.read(["the UN-led"])
    assert one.units.tolist() == other.units.tolist() and again.splits == "-"
    for name, row in one.windows[0].inputs.items():
        assert (row == other.windows[0].inputs[name]).all()
    for broken in ({"tokens": 1}, {**reader.get_config(), "splits": 1}):
        with pytest.raises(ValueError, match="needs"):
            WordReader.from_config(broken)


def test_tokens_are_joined_and_read_from_columns():
    assert join_tokens([]) == ("", [])
    sentences = read_conll_tokens(["-DOCSTART- O", "", "Kim NNP B-PER", "in IN O", "上 O", "", "Yes"])
    assert [(s.text, s.tokens) for s in sentences] == [("Kim in上", [(0, 3), (4, 6), (6, 7)]), ("Yes", [(0, 3)])]
    assert [s.text for s in read_conll_tokens(["李 B", "雷 I"])] == ["李雷"]
    assert [s.text for s in read_conll_tokens(["科0 O", "技1 O", "", "a0 O"])] == ["科技", "a"]  # as in Weibo

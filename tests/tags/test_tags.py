"""kcrf.tags against literal tables and round trips."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcrf.tags import TagScheme, bio, bioes, bmes, check_tags, tags_to_words, words_to_tags

BACKENDS = ["torch"]


def allowed(scheme):
    labels = scheme.labels
    pairs = itertools.product(range(len(labels)), repeat=2)
    return {f"{labels[i]}>{labels[j]}" for i, j in pairs if scheme.allowed_transitions[i, j]}


def test_bmes_has_bert4keras_numbers_and_the_eight_legal_steps():
    scheme = bmes()
    assert scheme.labels == ("s", "b", "m", "e")
    assert allowed(scheme) == {"s>s", "s>b", "b>m", "b>e", "m>m", "m>e", "e>s", "e>b"}
    assert scheme.allowed_starts.tolist() == [True, True, False, False]
    assert scheme.allowed_ends.tolist() == [True, False, False, True]


def test_bio_lets_an_inside_tag_follow_its_own_type_only():
    forbidden = {"O>I-A", "O>I-B", "B-A>I-B", "I-A>I-B", "B-B>I-A", "I-B>I-A"}
    scheme = bio(["A", "B"])
    every = {f"{a}>{b}" for a in scheme.labels for b in scheme.labels}
    assert allowed(scheme) == every - forbidden
    assert scheme.allowed_starts.tolist() == [True, True, False, True, False]
    assert scheme.allowed_ends.all()


def test_bioes_closes_what_it_opens():
    scheme = bioes(["A"])
    assert scheme.labels == ("O", "B-A", "I-A", "E-A", "S-A")
    opened = {f"{a}>{b}" for a in ("B-A", "I-A") for b in ("I-A", "E-A")}
    assert allowed(scheme) == opened | {f"{a}>{b}" for a in ("O", "E-A", "S-A") for b in ("O", "B-A", "S-A")}
    assert scheme.allowed_starts.tolist() == [True, True, False, False, True]
    assert scheme.allowed_ends.tolist() == [True, False, False, True, True]


spans = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4), st.sampled_from("AB")), max_size=5)


@given(spans, st.integers(0, 3))
def test_entity_spans_come_back_from_their_tags_which_are_legal(gaps, tail):
    placed, position = [], 0
    for gap, length, label in gaps:
        placed.append((position + gap, position + gap + length, label))
        position += gap + length
    for scheme in (bio(["A", "B"]), bioes(["A", "B"])):
        tags = scheme.encode(placed, position + tail)
        assert scheme.decode(tags) == placed
        assert scheme.violations(tags) == []
        assert pickle.loads(pickle.dumps(scheme)).encode(placed, position + tail) == tags


@given(st.lists(st.text(max_size=6).filter(lambda word: word.split() == [word]), max_size=8))
def test_words_come_back_from_their_tags_which_are_legal(words):
    tags = words_to_tags(words)
    assert tags_to_words("".join(words), tags) == words
    assert bmes().violations(tags) == []


@given(st.lists(st.integers(0, 3), max_size=12))
def test_any_tags_at_all_cut_a_text_without_loss(tags):
    text = "".join(chr(0x4E00 + i) for i in range(len(tags)))
    assert "".join(tags_to_words(text, tags)) == text
    assert [text[a:b] for a, b in bmes().decode(tags)] == tags_to_words(text, tags)


def test_illegal_entity_tags_are_read_as_conlleval_reads_them():
    scheme = bio(["A", "B"])
    tags = [scheme.labels.index(label) for label in ("I-A", "I-B", "O", "B-A", "I-B", "I-B")]
    assert scheme.decode(tags) == [(0, 1, "A"), (1, 2, "B"), (3, 4, "A"), (4, 6, "B")]


@pytest.mark.parametrize(
    ("scheme", "tags", "spans"),
    [
        (bio(["A", "B"]), [1, 2, -1, -1], [(0, 2, "A")]),
        (bio(["A", "B"]), [0, -1, 0], []),
        (bio(["A"]), [1, -100, 2], [(0, 1, "A"), (2, 3, "A")]),
        (bioes(["A"]), [1, -1], [(0, 1, "A")]),
        (bmes(), [0, 1, 3, -1, -1], [(0, 1), (1, 3)]),
        (bmes(["n"]), [0, -1], [(0, 1, "n")]),
    ],
)
def test_unknown_tags_and_those_of_padding_are_in_no_span(scheme, tags, spans):
    assert scheme.decode(tags) == scheme.decode(np.array(tags)) == spans


def test_violations_name_the_place_and_skip_unknown_tags():
    assert bmes().violations([2, 3]) == [(0, None, "m")]
    assert bmes().violations([1, -1, 1]) == [(2, "b", None)]


def indices(scheme, text):
    return [scheme.labels.index(label) for label in text.split()]


@pytest.mark.parametrize(
    ("scheme", "tags", "repaired"),
    [
        (bio(["A", "B"]), "I-A I-A B-A I-A O I-B I-B I-A", "B-A I-A B-A I-A O B-B I-B B-A"),  # IOB1
        (bio(["A", "B"]), "B-A I-B O", "B-A B-B O"),
        (bioes(["A"]), "B-A O I-A I-A E-A E-A B-A", "S-A O B-A I-A E-A S-A S-A"),
        (bioes(["A", "B"]), "B-A E-B", "S-A S-B"),
        (bmes(), "m e b b m s", "b e s b e s"),
        (bmes(), "s m m b", "s b e s"),
    ],
)
def test_a_repaired_sequence_is_the_legal_one_of_the_same_spans(scheme, tags, repaired):
    assert scheme.repair(indices(scheme, tags)) == indices(scheme, repaired)


@given(st.sampled_from([bmes(), bio(["A", "B"]), bioes(["A", "B"])]), st.lists(st.integers(0, 99), max_size=9))
def test_repairing_makes_legal_keeps_spans_and_leaves_legal_tags_alone(scheme, numbers):
    tags = [number % len(scheme) for number in numbers]
    repaired = scheme.repair(tags)
    assert scheme.violations(repaired) == []
    assert scheme.decode(repaired) == scheme.decode(tags)
    assert scheme.repair(repaired) == repaired
    assert scheme.violations(tags) or repaired == tags


def test_checked_tags_come_back_as_lists_repaired_where_asked():
    assert check_tags([np.array([1, 3]), (0,), []], bmes(), lengths=[2, 1, 0]) == [[1, 3], [0], []]
    assert check_tags([[1, -1, 3], [-100]], bmes(), repair=True) == [[1, -1, 3], [-100]]
    assert check_tags([[0, 1, 3], [1, 2]], bmes(), repair=True) == [[0, 1, 3], [1, 3]]


def test_violations_are_told_by_sentence_position_and_labels_and_counted():
    sentences = [[0, 0], [2, 3], [1, 1, 3], [0, 1]] + [[3]] * 3 + [[3, 3]]
    with pytest.raises(ValueError) as error:
        check_tags(sentences, bmes())
    assert str(error.value) == (
        "Tags must follow the scheme bmes; `repair=True` repairs them. Received: 8 violations in 7 of 8 sentences, "
        "first sentence 1, position 0: m at the start; sentence 2, position 1: b after b; sentence 3, position 1: b at "
        "the end; sentence 4, position 0: e at the start; sentence 5, position 0: e at the start"
    )


@pytest.mark.parametrize("scheme", [bmes(), bio(["A"]), bioes(["A", "B"])], ids=lambda s: s.name)
def test_a_scheme_comes_back_from_its_config(scheme):
    assert TagScheme.from_config(scheme.get_config()) == scheme
    assert len(scheme) == len(scheme.labels)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bmes().encode([(0, 1)], 2), "Words must cover the sentence. Received: no word at position 1"),
        (lambda: bio(["A"]).encode([(0, 2, "A"), (1, 3, "A")], 4), r"must not overlap. Received: \(1, 3, 'A'\)"),
        (lambda: bio(["A"]).encode([(2, 2, "A")], 4), r"0 <= start < end <= 4. Received: \(2, 2, 'A'\)"),
        (lambda: bio(["A"]).encode([(0, 1, "C")], 4), r"entity types \('A',\). Received: 'C'"),
        (lambda: bio(["A", "A"]), "distinct, non-empty strings. Received: types=.*'A', 'A'"),
        (lambda: bioes([]), "distinct, non-empty strings"),
        (lambda: bio(["A", 1]), "distinct, non-empty strings. Received: types=.*'A', 1"),
        (lambda: bio(["A"]).encode([(0, 1)], 2), r"needs \(start, end, label\). Received: \(0, 1\)"),
        (lambda: bmes().encode([(0, 1, "A")], 1), r"needs \(start, end\). Received: \(0, 1, 'A'\)"),
        (lambda: tags_to_words("ab", [0]), "one tag per character. Received: 2 characters, 1 tags"),
        (lambda: check_tags([[0], [0, 4]], bmes()), "below 4, .* Received: tag 4 in sentence 1 at position 1"),
        (lambda: check_tags([[0], [4]], bmes(), repair=True), "Received: tag 4 in sentence 1 at position 0"),
        (lambda: check_tags([[0], [0]], bmes(), [1, 2]), "Received: sentence 1 with 2 characters, 1 tags"),
        (lambda: check_tags([[0]], bmes(), [1, 2]), "one length per sentence. Received: 1 sentences, 2 lengths"),
        (
            lambda: check_tags([[0], [3, -1]], bmes(), repair=True),
            "sentence 1: .* Received: the unknown tag -1 at position 1",
        ),
        (lambda: bmes().repair([0, -100]), "needs tags >= 0. Received: the unknown tag -100 at position 1"),
        (lambda: TagScheme.from_config({"name": "iob1"}), "one of .* Received: name='iob1'"),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("make", [bio, bioes, bmes])
@pytest.mark.parametrize("types", ["PER", {"PER", "LOC"}, frozenset(["PER"])])
def test_types_without_an_order_are_refused(make, types):
    """The order of the types is the order of a saved model's tags; that of a set differs between processes."""
    with pytest.raises(ValueError, match="Types must be a list or a tuple of strings. Received: .*; use "):
        make(types)


@pytest.mark.parametrize("make", [bio, bioes])
def test_tags_in_place_of_types_are_refused(make):
    with pytest.raises(ValueError, match=r"without B- or I-. Received: tags, .*; use \('PER',\)"):
        make(["B-PER", "I-PER", "O"])
    assert make(["B-PER", "LOC"]).types == ("B-PER", "LOC")  # whose types are named so has them


@pytest.mark.parametrize("types", [["O", "PER"], ["o", "b-PER", "i-PER"], ["B_PER", "I_PER", "O"]])
def test_tags_in_any_spelling_are_no_types(types):
    with pytest.raises(ValueError, match=r"without B- or I-. Received: tags, .*; use \('PER',\)"):
        bio(types)
    assert bio(["PERIOD", "Bird", "b_cell"]).types == ("PERIOD", "Bird", "b_cell")


@pytest.mark.parametrize("words", ["今天 天气", ["今天", ""], ["今天", 3], ["今天 天气"], ["今天\n"]])
def test_words_are_a_list_of_words(words):
    with pytest.raises(ValueError, match="`words_to_tags` needs "):
        words_to_tags(words)


@pytest.mark.parametrize("tags", [["B", "E"], [1, 7], [1, "3"]])
def test_tags_of_words_are_numbers(tags):
    with pytest.raises(ValueError, match="Tags must be 0 = s, 1 = b, 2 = m, 3 = e. Received: "):
        tags_to_words("今天", tags)

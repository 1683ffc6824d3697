"""kcrf.augmentation: Augmented copies: labels are correct, spans are exact, and the same seed gives the same text."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcrf.augmentation import Synonyms, altered_copies
from kcrf.augmentation.copies import OPERATIONS, alter_example
from kcrf.corpora import Example, Sentence, load_mini
from kcrf.readers.word_tokens import entities_that_cut_tokens, token_spans

BACKENDS = ["torch"]

SYNONYMS = Synonyms([["big", "large", "very large"], ["大", "巨大"], ["上海", "沪", "申城"], ["a", "one"]])
LETTERS = "aab 大上海沪12.  "


@st.composite
def sentences(draw):
    """Sentences with entities that begin and end anywhere, with tokens or without."""
    text = draw(st.text(LETTERS, max_size=16))
    edges = sorted(draw(st.sets(st.integers(0, len(text)), max_size=6)))
    spans = [(a, b, draw(st.sampled_from(["PER", "LOC"]))) for a, b in zip(edges[::2], edges[1::2])]
    spans = [span for span in spans if text[span[0] : span[1]].strip()]
    cuts = sorted({0, len(text), *draw(st.sets(st.integers(0, len(text)), max_size=6))})
    cuts = sorted({*cuts, *(edge for span in spans for edge in span[:2])})
    tokens = [(a, b) for a, b in zip(cuts, cuts[1:])] if draw(st.booleans()) else []
    return Sentence(text, spans, tokens)


def outside(sentence):
    """The stretches of text before, between and behind the entities."""
    edges = [0, *(edge for start, end, _ in sentence.spans for edge in (start, end)), len(sentence.text)]
    return [sentence.text[a:b] for a, b in zip(edges[::2], edges[1::2])]


def entities(sentence):
    return [(label, sentence.text[start:end]) for start, end, label in sentence.spans]


@given(st.lists(sentences(), min_size=1, max_size=4), st.sampled_from(OPERATIONS["ner"]), st.integers(0, 9))
def test_entities_keep_their_types_and_stand_exactly_where_their_spans_say(items, name, seed):
    known = {label: {text for s in items for other, text in entities(s) if other == label} for label in ("PER", "LOC")}
    for item, copies in zip(items, altered_copies(items, "ner", 2, [name], synonyms=SYNONYMS, seed=seed)):
        for copy in copies:
            assert copy != item
            assert [label for *_, label in copy.spans] == [label for *_, label in item.spans]
            assert bool(copy.tokens) == bool(item.tokens)
            if name == "mentions":  # the text around them is as it was
                assert outside(copy) == outside(item)
                assert all(text in known[label] for label, text in entities(copy))
            if name == "synonyms":  # they are as they were
                assert entities(copy) == entities(item)
            if name == "shuffle":  # each has the same characters, as has each stretch between
                assert [(label, Counter(text)) for label, text in entities(copy)] == [
                    (label, Counter(text)) for label, text in entities(item)
                ]
                assert [Counter(text.replace(" ", "")) for text in outside(copy)] == [
                    Counter(text.replace(" ", "")) for text in outside(item)
                ]  # 1上1 becomes 1 1上: a space keeps words apart


def tagged_tokens(sentence):
    """The tokens with their BIO tags, written out token by token."""
    found = []
    for start, end in sentence.tokens or token_spans(sentence.text).tolist():
        inside = [span for span in sentence.spans if span[0] <= start < span[1]]
        tag = f"{'B' if inside[0][0] == start else 'I'}-{inside[0][2]}" if inside else "O"
        found.append((tag, sentence.text[start:end]))
    return found


@pytest.mark.parametrize("part", [load_mini("ner").valid, [Sentence(s.text, s.spans) for s in load_mini("ner").valid]])
def test_tokens_become_others_of_the_same_tag_and_their_number_stays(part):
    known = {pair for sentence in part for pair in tagged_tokens(sentence)}
    changed = 0
    for sentence, (copy,) in zip(part, altered_copies(part, "ner", 1, ["tokens"], share=0.5)):
        before, after = tagged_tokens(sentence), tagged_tokens(copy)
        assert [tag for tag, _ in after] == [tag for tag, _ in before] and set(after) <= known
        changed += sum(a != b for a, b in zip(before, after)) / len(before)
    assert 0.4 < changed / len(part) < 0.5  # a half is drawn; some of these draw what they were


def test_a_mention_takes_its_tokens_along_and_the_gap_before_it_stays():
    kim = Sentence("So Kim  left.", [(3, 6, "PER")], [(0, 2), (3, 6), (8, 12), (12, 13)])
    ann = Sentence("Ann Lee.", [(0, 7, "PER")], [(0, 3), (4, 7), (7, 8)])
    (first,), (second,) = altered_copies([kim, ann], "ner", 1, ["mentions"])
    assert first == Sentence("So Ann Lee  left.", [(3, 10, "PER")], [(0, 2), (3, 6), (7, 10), (12, 16), (16, 17)])
    assert second == Sentence("Kim.", [(0, 3, "PER")], [(0, 3), (3, 4)])


@pytest.mark.parametrize("name", ["tokens", "shuffle", "mentions"])
def test_entities_stay_whole_words_in_text_without_tokens(name):
    texts = ["Kim's brother didn't visit Leeds, Mr. Brown said.", "In Paris, Ann-Marie (aged 5) won the UN-led cup."]
    places = [[(0, 3, "PER"), (27, 32, "LOC"), (34, 43, "PER")], [(3, 8, "LOC"), (10, 19, "PER"), (37, 39, "ORG")]]
    items = [Sentence(*item) for item in zip(texts, places, strict=True)] * 8
    assert entities_that_cut_tokens(items, "-") == []
    copies = [copy for more in altered_copies(items, "ner", copies=4, operations=[name]) for copy in more]
    assert len(copies) > 20 and entities_that_cut_tokens(copies, "-") == []
    assert any("UN-led" in copy.text for copy in copies)


@pytest.mark.parametrize("name", ["swap", "deletion"])
def test_words_of_a_text_stay_words(name):
    text = "Fine film, don't miss it. (5/5)"
    words = Counter(text[start:end] for start, end in token_spans(text))
    for (copy,) in altered_copies([Example(text, "good")] * 50, "classify", operations=[name], share=0.3):
        assert Counter(copy.text[start:end] for start, end in token_spans(copy.text)) <= words, copy.text


def test_a_synonym_of_several_tokens_is_found_and_written_as_such():
    shanghai = Sentence("在上海。", [], [(0, 1), (1, 2), (2, 3), (3, 4)])
    (copies,) = altered_copies([shanghai], "ner", 9, ["synonyms"], synonyms=SYNONYMS)
    assert {c.text: c.tokens for c in copies} == {
        "在沪。": [(0, 1), (1, 2), (2, 3)],
        "在申城。": [(0, 1), (1, 2), (2, 3), (3, 4)],
    }


@pytest.mark.parametrize("with_tokens", [False, True])
def test_the_synonym_of_a_word_of_one_letter_is_a_word(with_tokens):
    synonyms = Synonyms([["a", "one", "a single"], ["I", "myself"]])
    text = "I saw a film"
    tokens = [tuple(span) for span in token_spans(text).tolist()] if with_tokens else []
    items = [Sentence(text, [(2, 5, "X")], tokens)] * 8
    copies = [copy for more in altered_copies(items, "ner", 2, ["synonyms"], 0.9, synonyms) for copy in more]
    assert {word for copy in copies for word in copy.text.split()} <= {*text.split(), "one", "single", "myself"}
    assert any(word in copy.text for copy in copies for word in ("one", "single"))


def test_synonyms_in_a_file_of_characters_are_characters():
    tokens = [(i, i + 1) for i in range(4)]
    items = [Sentence("CT好用", [], tokens), Sentence("我", [], [(0, 1)])]
    (copy,), _ = altered_copies(items, "ner", 1, ["synonyms"], synonyms=Synonyms([["CT", "MRI"]]))
    assert copy == Sentence("MRI好用", [], [(i, i + 1) for i in range(5)])


WORDS = st.lists(st.text("大上海ab", min_size=1, max_size=3), max_size=6)


@given(st.lists(WORDS, min_size=1, max_size=4), st.integers(0, 9))
def test_operations_on_words_keep_whole_words(items, seed):
    by = {name: altered_copies(items, "cws", 1, [name], synonyms=SYNONYMS, seed=seed) for name in OPERATIONS["cws"]}
    for number, words in enumerate(items):
        for joined in by["join"][number]:
            assert joined == words + items[number + 1] != words
        for cut in by["cut"][number]:
            n = len(cut)
            assert 0 < n < len(words) and (cut == words[:n] or cut == words[-n:])
        for replaced in by["synonyms"][number]:
            pairs = list(zip(words, replaced, strict=True))
            assert all(a == b or b in SYNONYMS.of(a) for a, b in pairs) and replaced != words


def test_a_synonym_of_two_words_does_not_take_the_place_of_one():
    synonyms = Synonyms([["NYC", "New York"], ["fine", "good", "not bad"]])
    wanted = {"operations": ["synonyms"], "share": 0.9, "synonyms": synonyms}
    assert altered_copies([["NYC", "is", "fine"]] * 9, "cws", **wanted) == [[["NYC", "is", "good"]]] * 9


def test_sentences_with_words_as_spans_are_taken_for_words():
    (copies, _) = altered_copies([Sentence("我来了", [(0, 1), (1, 3)]), ["好"]], "cws", 20, ["join", "cut"])
    assert {tuple(words) for words in copies} == {("我", "来了", "好"), ("我",), ("来了",)}


def eda(text, name, share=0.3, seed=0):
    return alter_example(Example(text, "x"), name, share, SYNONYMS, np.random.default_rng(seed)).text


@given(st.text(LETTERS, min_size=1, max_size=16).filter(str.strip), st.sampled_from(OPERATIONS["classify"]))
def test_texts_keep_their_label_and_are_never_blank(text, name):
    for copy in altered_copies([Example(text, "x", source="f:1")], "classify", 2, [name], synonyms=SYNONYMS)[0]:
        assert copy.label == "x" and copy.source == "f:1" and copy.text.strip()
        before, after = Counter(text.replace(" ", "")), Counter(copy.text.replace(" ", ""))
        if name == "swap":
            assert before == after
        if name == "deletion":
            assert after < before
        if name == "insertion":
            assert before < after


def test_eda_alters_as_many_words_as_the_share_says():
    text = "p q r s t u v w x y"
    assert sum(a != b for a, b in zip(text.split(), eda(text, "swap", 0.19).split())) == 2
    assert len(eda("a big a " * 10, "insertion", 0.2).split()) - 30 in range(6, 13)  # 6 synonyms, of 1 or 2 words
    assert eda("a big a", "synonyms", 0.9) in ("one large one", "one very large one")
    deleted = [30 - len(eda("p q r " * 10, "deletion", 0.2, seed).split()) for seed in range(200)]
    assert 5.5 < np.mean(deleted) < 6.5 and np.std(deleted) > 1.5  # a fifth of 30, drawn word by word
    assert eda("Big 上海。", "synonyms", 0.9) in {f"{a} {b}。" for a in ("Large", "Very large") for b in ("沪", "申城")}


def test_words_that_are_inserted_get_blanks_where_the_language_has_them():
    inserted = {eda("a b.", "insertion", seed=seed) for seed in range(30)}
    assert inserted == {"one a b.", "a one b.", "a b one.", "a b. one"}
    assert {eda("大.", "insertion", seed=seed) for seed in range(30)} == {"巨大大.", "大巨大.", "大.巨大"}


def test_of_a_pair_one_text_is_altered():
    pairs = [Example("p q", "x", "r s")] * 20
    changed = [(c.text != "p q", c.text_b != "r s") for (c,) in altered_copies(pairs, "classify", 1, ["swap"])]
    assert set(changed) == {(True, False), (False, True)}


def test_the_same_seed_makes_the_same_text_whatever_stands_before_it():
    items = [Example(f"p q r s t {n}", "x") for n in range(6)]
    first, again, other = (altered_copies(items, "classify", 3, seed=seed) for seed in (1, 1, 2))
    assert first == again != other
    assert altered_copies(items[:3], "classify", 3, seed=1) == first[:3]
    assert all(len(set(map(str, copies))) == 3 for copies in first)
    assert [copies[:1] for copies in first] == altered_copies(items, "classify", 1, seed=1)
    assert all("one" not in copy.text and len(copy.text) <= 11 for copies in first for copy in copies)  # no synonyms


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"task": "tag"}, "`task` is one of classify, ner, cws. Received: task='tag'"),
        ({"copies": 0}, "copies >= 1.* Received: copies=0"),
        ({"share": 1.0}, "0 < share < 1. Received: .* share=1.0"),
        ({"operations": ["mention"]}, "of task='ner' are synonyms, .* Received: mention"),
        ({"operations": []}, "Received: none"),
        ({"operations": ["synonyms"]}, "`synonyms` or `synonym_vectors` are needed by the operation synonyms"),
        ({"operations": "mentions"}, "must be a list of names. Received: 'mentions'"),
        ({"copies": 1.5}, "an int copies >= 1.* Received: copies=1.5"),
        ({"items": [("a", "x")], "task": "classify"}, r"of type `Example`. Received: \"\('a', 'x'\)"),
        ({"items": [["a"]]}, r"of type `Sentence`. Received: \"\['a'\]"),
        ({"items": ["今天 好"], "task": "cws"}, "a list of words without white space. Received: '今天 好'"),
    ],
)
def test_what_cannot_be_meant_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        altered_copies(**{"items": [], "task": "ner", **values})


def test_words_of_unknown_sentences_are_neither_copied_nor_joined_to_others():
    unknown = Sentence("今天天气好", [(0, 2)], unknown=[(2, 5)])
    copies = altered_copies([Sentence("我们去", [(0, 2), (2, 3)]), unknown, ["很", "好"]], "cws", 4, ["join", "cut"])
    assert copies[1] == [] and copies[0] and copies[2]
    assert all("今天" not in copy for copies_of_one in copies for copy in copies_of_one)

"""kcrf.taggers: Constraints on the spans of a text: the words, the allowed tags, and the windows."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcrf.taggers.constraints import (
    SpanConstraints,
    allowed_tags,
    check_spans,
    in_units,
    latin_runs,
    write_tags,
)
from kcrf.taggers.user_dictionary import matches
from kcrf.tags import bio, bioes, bmes

BACKENDS = ["torch"]
SCHEMES = [bmes(), bio(["A", "B"]), bioes(["A"])]


@pytest.mark.parametrize(
    "text, runs",
    [
        ("hello世界", ["hello"]),
        ("iPhone15和Ｗｉｎ１０", ["iPhone15", "Ｗｉｎ１０"]),
        ("约3.14亿，2,000人，1-2天", ["3.14", "000"]),
        ("don't说l’été", ["don't", "l’été"]),
        ("3.天晴。a.b", []),
        ("x6×6", ["x6"]),
        ("A股5G", ["5G"]),
        ("好👍🏽👨‍👩‍👧和❤️1️⃣", ["👍🏽", "👨‍👩‍👧", "❤️", "1️⃣"]),
        ("🇨🇳🇫🇷赢🏴󠁧󠁢󠁥󠁮󠁧󠁿葛󠄀 ‍今", ["🇨🇳", "🇫🇷", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "葛󠄀", "‍今"]),
    ],
)
def test_latin_words_and_numbers(text, runs):
    assert [text[start:end] for start, end in latin_runs(text)] == runs


def test_of_matches_that_begin_at_one_place_the_longest_counts():
    assert matches("中国人民银行行长", {"中国", "中国人民", "人民银行", "银行", "行长"}) == [(0, 4), (4, 6), (6, 8)]
    assert matches("", {"中"}) == [] == matches("中国", set())


def sequences(scheme, count):
    """All tag sequences that the scheme allows."""
    return {tags for tags in product(range(len(scheme)), repeat=count) if not scheme.violations(tags)}


@given(scheme=st.sampled_from(SCHEMES), data=st.data())
def test_allowed_tags_leave_exactly_the_sequences_that_have_the_spans(scheme, data):
    count = 5
    borders = sorted(data.draw(st.sets(st.integers(0, count), max_size=4)))
    labels = [[], *([label] for label in scheme.types)] if scheme.types else [None, []]
    spans = []
    for start, end in zip(borders, borders[1:]):
        label = data.draw(st.sampled_from(labels))
        if (label == [] and not scheme.types) or (scheme.types and label):
            spans.append((start, end, *label))
    whole = [] if scheme.types else [tuple(sorted(data.draw(st.lists(st.integers(0, count), min_size=2, max_size=2))))]
    allowed = allowed_tags(scheme, SpanConstraints(spans, whole), 0, count)
    for tags in sequences(scheme, count):
        found = scheme.decode(tags)
        inside = {b for start, end in whole for b in range(start + 1, end)} - {b for span in spans for b in span[:2]}
        holds = set(spans) <= set(found) and not inside & {b for span in found for b in span[:2]}
        assert holds == all(allowed[np.arange(count), list(tags)])


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.name)
def test_a_window_that_cuts_a_span_keeps_a_legal_sequence_and_the_text_gets_the_span(scheme):
    label = scheme.types[:1]
    known = SpanConstraints([(2, 7, *label)], [] if label else [(6, 9)])
    for first, count in [(0, 4), (3, 3), (5, 5), (8, 2)]:
        allowed = allowed_tags(scheme, known, first, count)
        assert any(all(allowed[np.arange(count), list(tags)]) for tags in sequences(scheme, count))
    tags = [0] * 9 if scheme.types else scheme.encode([(i, i + 1) for i in range(9)], 9)
    write_tags(scheme, known, tags)
    assert (2, 7, *label) in scheme.decode(tags)


def test_constraints_are_converted_to_units():
    units = np.array([[0, 2], [3, 4], [4, 8]])  # character 2 is in no unit
    assert in_units(bio(["A"]), units, SpanConstraints([(3, 8, "A")], []), 9) == SpanConstraints([(1, 3, "A")], [])
    assert in_units(bmes(), units, SpanConstraints([(0, 3), (3, 4)], [(4, 9)]), 9) == SpanConstraints(
        [(0, 1), (1, 2)], [(2, 3)]
    )
    for scheme, span in [(bio(["A"]), (0, 3, "A")), (bio(["A"]), (3, 6, "A")), (bmes(), (0, 2)), (bmes(), (5, 9))]:
        with pytest.raises(ValueError, match="`spans` must begin and end at the boundaries of the model"):
            in_units(scheme, units, SpanConstraints([span], []), 9)


@pytest.mark.parametrize(
    "spans, types, message",
    [
        ([(0, 2, "A")], (), r"`spans` needs \(start, end\). Received: \(0, 2, 'A'\)"),
        ([(0, 2)], ("A",), r"`spans` needs \(start, end, label\), with a label of \('A',\). Received: \(0, 2\)"),
        ([(0, 2, "X")], ("A",), r"with a label of \('A',\). Received: \(0, 2, 'X'\)"),
        ([(0, 2.5)], (), r"needs \(start, end\). Received: \(0, 2.5\)"),
        ([(2, 2)], (), r"must lie in the text of 4 characters. Received: \(2, 2\)"),
        ([(-1, 2)], (), r"must lie in the text of 4 characters. Received: \(-1, 2\)"),
        ([(3, 5)], (), r"must lie in the text of 4 characters. Received: \(3, 5\)"),
        ([(1, 3), (0, 2)], (), r"must not overlap. Received: \(0, 2\) and \(1, 3\)"),
    ],
)
def test_spans_that_cannot_be_are_refused(spans, types, message):
    with pytest.raises(ValueError, match=message):
        check_spans(spans, "上海下雨", types)


def test_spans_are_sorted():
    assert check_spans([(2, 4), (0, 1)], "上海下雨") == [(0, 1), (2, 4)]

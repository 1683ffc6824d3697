"""Tests of kcrf.taggers.

One result type: spans with places, labels and probabilities, whatever the task and however they are asked for.
"""

import dataclasses

import pytest

from kcrf.taggers import Span, WordSegmenter, load_tagger
from kcrf.taggers.open_model import built_in_segmenter

BACKENDS = ["torch"]
TEXT = "研究生命的起源"


@pytest.fixture(scope="module")
def segmenter():
    return WordSegmenter()


def test_the_probability_of_a_word_is_that_of_all_segmentations_with_it(segmenter):
    ways = segmenter.k_best(TEXT, 4 ** len(TEXT))
    assert sum(p for _, p in ways) == pytest.approx(1, abs=1e-4)
    assert [span.text for span in ways[0][0]] == segmenter.segment(TEXT)
    (words,) = segmenter([TEXT])
    assert [span.text for span in words] == segmenter.segment(TEXT)
    for span in words:
        holds = [p for spans, p in ways if span.key in [other.key for other in spans]]
        assert span.probability == pytest.approx(sum(holds), abs=1e-4)
    (given,) = segmenter.predict([TEXT], spans=[[(1, 3)]])
    assert Span(1, 3, "究生", "", pytest.approx(1)) in given


def test_spans_have_places_in_the_whole_text_and_can_be_given_back(segmenter):
    text = " 研究 生命Python3 "
    (spans,) = segmenter([text])
    assert all(text[span.start : span.end] == span.text for span in spans)
    assert "".join(span.text for span in spans) == "".join(text.split())
    assert segmenter.segment(text, spans=spans) == [span.text for span in spans]
    assert segmenter.predict([text, ""]) == segmenter([text, ""]) == [spans, []]


def test_spans_are_frozen_hashable_and_ordered():
    span = Span(0, 2, "上海", "LOC", 0.98)
    with pytest.raises(dataclasses.FrozenInstanceError):
        span.start = 1
    assert len({span, Span(0, 2, "上海", "LOC", 0.98), Span(0, 2, "上海")}) == 2
    assert sorted([Span(2, 3, "好"), span]) == [span, Span(2, 3, "好")]
    assert (span.key, Span(0, 2, "上海").key) == ((0, 2, "LOC"), (0, 2))
    assert Span(0, 2, "上海").as_dict() == {"start": 0, "end": 2, "text": "上海"}


def test_any_model_is_opened_by_the_class_of_its_task(segmenter):
    tagger = load_tagger(built_in_segmenter())
    assert type(tagger) is WordSegmenter and tagger([TEXT]) == segmenter([TEXT])
    with pytest.raises(TypeError, match="for one text call `segment`. Received: '研究"):
        tagger(TEXT)

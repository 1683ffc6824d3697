"""Tests of kcrf.taggers.

A probability comes after its item, no argument changes a type, and the old spellings work with a warning.
"""

from contextlib import contextmanager
from pathlib import Path

import pytest

from kcrf.taggers import EntityRecognizer, WordSegmenter
from kcrf.taggers.open_model import load_tagger

BACKENDS = ["torch"]
FOLDER = Path(__file__).parents[1] / "fixtures" / "0.1.0"
TEXT = "研究生命的起源"


@pytest.fixture(scope="module")
def segmenter():
    return WordSegmenter()


@pytest.fixture(scope="module")
def recognizer():
    return EntityRecognizer(FOLDER / "entities")


@contextmanager
def deprecated(old, new):
    """Expects a warning that names both, at a line of this file; Keras may warn of something else meanwhile."""
    with pytest.warns(DeprecationWarning) as warned:
        yield
    (ours,) = [warning for warning in warned if str(warning.message).startswith(f"{old} is now {new}")]
    assert ours.filename == __file__


def test_the_probability_of_a_word_is_that_of_all_segmentations_with_it(segmenter):
    ways = segmenter.k_best(TEXT, 4 ** len(TEXT))
    assert sum(p for _, p in ways) == pytest.approx(1, abs=1e-4) and ways[0][0] == segmenter.segment(TEXT)
    words = segmenter.segment_with_confidence(TEXT)
    assert [word for word, _ in words] == segmenter.segment(TEXT)
    for word, probability in words:  # no word occurs in TEXT twice
        assert probability == pytest.approx(sum(p for way, p in ways if word in way), abs=1e-4)
    assert dict(segmenter.segment_with_confidence(TEXT, spans=[(1, 3)]))["究生"] == pytest.approx(1)
    assert segmenter.segment_batch_with_confidence([TEXT, ""]) == [words, []]


def test_old_spellings_of_the_segmenter_return_what_they_did_and_name_the_new_ones(segmenter):
    words, best = segmenter.segment_with_confidence(TEXT), segmenter.k_best(TEXT, 3)
    with deprecated("segment with confidence=True", "segment_with_confidence"):
        assert segmenter.segment(TEXT, True) == words
    with deprecated("segment_batch with confidence=True", "segment_batch_with_confidence"):
        assert segmenter.segment_batch([TEXT], confidence=True, spans=[[(0, 2)]]) == [
            segmenter.segment_with_confidence(TEXT, [(0, 2)])
        ]
    with deprecated("WordSegmenter.top_k", "k_best,"):
        assert segmenter.top_k(TEXT, 3) == [(probability, way) for way, probability in best]
    with deprecated("WordSegmenter.top_k_batch", "k_best_batch,"):
        assert segmenter.top_k_batch([TEXT], 3, batch_size=2) == [[(p, way) for way, p in best]]


def test_old_spellings_of_the_recognizer_return_what_they_did_and_name_the_new_ones(recognizer):
    text = "李雷住在上海。"
    best = recognizer.k_best(text, 3)
    probabilities = [probability for _, probability in best]
    assert probabilities == sorted(probabilities, reverse=True) and 0 < sum(probabilities) <= 1 + 1e-5
    with deprecated("EntityRecognizer.top_k", "k_best,"):
        assert recognizer.top_k(text, 3) == [(probability, entities) for entities, probability in best]
    with deprecated("Tagger.top_k", "k_best,"):
        ((probability, spans), *_), *_ = load_tagger(FOLDER / "entities").top_k([text], 3)
    assert (spans, probability) == ([(e.start, e.end, e.label) for e in best[0][0]], pytest.approx(probabilities[0]))


def test_the_old_spelling_of_a_tagger_returns_what_it_did_and_names_the_new_one(recognizer):
    tagger, text = load_tagger(FOLDER / "entities"), "李雷住在上海。"
    (spans,) = tagger.spans_with_confidence([text])
    assert [span[:-1] for span in spans] == tagger.spans([text])[0] and spans
    assert [span[-1] for span in spans] == pytest.approx([e.confidence for e in recognizer.recognize(text)])
    with deprecated("spans with confidence=True", "spans_with_confidence"):
        assert tagger.spans([text], confidence=True) == [spans]

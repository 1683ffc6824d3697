"""kcrf.metrics against SIGHAN's printed figures and against counting by hand."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcrf.corpora import read_lines, read_segmented
from kcrf.metrics import TextMismatch, segmentation_scores, transition_report
from kcrf.tags import bmes


def test_a_word_counts_when_both_ends_are_right():
    gold = [["ab", "c", "d"], ["ab"]]
    predicted = [["ab", "cd"], ["a", "b"]]
    scores = segmentation_scores(gold, predicted, training_words=["ab", "d"])
    assert scores == {
        "true_words": 4,
        "test_words": 4,
        "recall": 1 / 4,
        "precision": 1 / 4,
        "f": 1 / 4,
        "oov_rate": 1 / 4,
        "oov_recall": 0.0,
        "iv_recall": 1 / 3,
    }


cuts = st.lists(st.booleans(), min_size=1, max_size=30)


def words_of(text, breaks):
    starts = [0] + [i for i in range(1, len(text)) if breaks[i]] + [len(text)]
    return [text[a:b] for a, b in zip(starts, starts[1:], strict=False)]


@given(st.data(), cuts)
def test_scores_equal_a_count_of_common_spans(data, breaks):
    text = "".join(chr(97 + i % 3) for i in range(len(breaks)))
    other = data.draw(st.lists(st.booleans(), min_size=len(breaks), max_size=len(breaks)))
    gold, predicted = words_of(text, breaks), words_of(text, other)

    def spans(flags):
        ends = [i for i in range(1, len(text)) if flags[i]] + [len(text)]
        return set(zip([0, *ends[:-1]], ends, strict=True))

    common = len(spans(breaks) & spans(other))
    scores = segmentation_scores([gold], [predicted])
    assert (scores["recall"], scores["precision"]) == (common / len(gold), common / len(predicted))
    assert segmentation_scores([gold], [gold])["f"] == 1.0


def test_a_share_of_nothing_is_none():
    scores = segmentation_scores([["a"]], [["a"]], training_words=["a"])
    assert scores["oov_recall"] is None and scores["iv_recall"] == 1.0
    assert segmentation_scores([], [])["f"] is None


def test_texts_that_differ_are_told_by_line_and_column():
    with pytest.raises(TextMismatch, match="line 2, column 3: gold and prediction must be the same text") as caught:
        segmentation_scores([["a"], ["ab", "c"]], [["a"], ["ab", "d"]])
    assert (caught.value.line, caught.value.column) == (2, 3)
    with pytest.raises(TextMismatch, match="line 1, column 2"):
        segmentation_scores([["ab"]], [["a"]])
    with pytest.raises(ValueError, match="one line for each other. Received: 2 lines of gold, 1 of prediction"):
        segmentation_scores([["a"], ["b"]], [["a"]])


def longest_matches(text, words):
    """Forward maximum matching, at most 10 characters a word."""
    found = []
    while text:
        size = next((n for n in range(min(10, len(text)), 1, -1) if text[:n] in words), 1)
        found.append(text[:size])
        text = text[size:]
    return found


@pytest.mark.parametrize("corpus", ["pku", "msr"])
@pytest.mark.parametrize("segmenter", ["fmm", "jieba", "jieba_nohmm"])
def test_the_official_figures_come_out(shared_data, corpus, segmenter):
    folder = shared_data / "cws" / "sighan2005"
    official = json.loads((folder / "official_scores.json").read_text(encoding="utf-8"))[corpus][segmenter]
    gold = read_segmented(folder / f"{corpus}_test_gold.utf8")
    words = set(read_lines(folder / f"{corpus}_training_words.utf8"))
    if segmenter == "fmm":
        predicted = [longest_matches("".join(sentence), words) for sentence in gold]
    else:
        jieba = pytest.importorskip("jieba", reason="needs jieba, which is not installed")
        predicted = [jieba.lcut("".join(sentence), HMM=segmenter == "jieba") for sentence in gold]
    scores = segmentation_scores(gold, predicted, words)
    assert {key: scores[key] for key in ("true_words", "test_words")} == {
        key: official[key] for key in ("true_words", "test_words")
    }
    for key in ("recall", "precision", "f", "oov_rate", "oov_recall", "iv_recall"):
        # Half a unit of the last digit, and a few words in 100,000 that the official script's `diff` aligns otherwise.
        assert abs(scores[key] - official[key]) < 0.0005 + 0.0001, key


def test_the_transition_report_counts_and_measures():
    scheme = bmes()
    transitions = np.where(scheme.allowed_transitions, 1.0, -1.0)
    emissions = [[3.0, 1.0, 0.0, 0.0], [0.0, 0.0, 4.0, 1.0], [9.0, 8.0, 0.0, 0.0]]
    report = transition_report(transitions, scheme, emissions)
    assert report == {"illegal_above_legal": 0, "illegal": 8, "size": 1.0, "gap": 2.0, "ratio": 0.5}
    assert transition_report(-transitions, scheme, emissions)["illegal_above_legal"] == 8
    transitions[0, 2] = 1.5  # s to m above s to b
    assert transition_report(transitions, scheme, emissions)["illegal_above_legal"] == 1

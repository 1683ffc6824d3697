"""kcrf.metrics: Scores of labels and numbers: scipy's correlations, and the definitions written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcrf.metrics import classification_scores, regression_scores, token_scores

BACKENDS = ["torch"]

LABELS = ["a", "b", "c"]
PAIRS = st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from(LABELS)), min_size=1, max_size=30)


def f1(gold, found, label):
    hits = sum(g == f == label for g, f in zip(gold, found))
    precision = hits / found.count(label) if found.count(label) else 0
    recall = hits / gold.count(label) if gold.count(label) else 0
    return 2 * precision * recall / (precision + recall) if precision + recall else 0


@given(PAIRS)
def test_the_scores_of_labels_are_their_definitions(pairs):
    gold, found = map(list, zip(*pairs))
    scores = classification_scores(gold, found, LABELS)
    assert scores["accuracy"] == pytest.approx(np.mean([g == f for g, f in pairs]))
    used = [label for label in LABELS if label in gold + found]
    assert scores["macro_f"] == pytest.approx(np.mean([f1(gold, found, label) for label in used]))
    assert [scores["labels"][label]["f"] for label in LABELS] == pytest.approx([f1(gold, found, x) for x in LABELS])
    assert scores["examples"] == len(pairs) and "f" not in scores


@given(PAIRS)
def test_matthews_is_the_correlation_of_the_indicators(pairs):
    """Gorodkin's R_K: the covariances of the indicator of each label, summed, as in Pearson's correlation."""
    gold, found = (np.array([[x == label for label in LABELS] for x in side], float) for side in zip(*pairs))
    gold, found = gold - gold.mean(0), found - found.mean(0)
    size = np.sqrt((gold**2).sum() * (found**2).sum())
    expected = (gold * found).sum() / size if size > 1e-9 else 0
    scores = classification_scores(*map(list, zip(*pairs)), LABELS)
    assert scores["matthews"] == pytest.approx(expected, abs=1e-12)


def test_of_two_labels_the_second_is_positive():
    gold, found = [1, 1, 1, 0, 0, 0, 0, 1], [1, 0, 1, 0, 1, 0, 0, 0]
    scores = classification_scores(gold, found, [0, 1])
    assert scores["f"] == pytest.approx(f1(gold, found, 1)) != pytest.approx(f1(gold, found, 0))
    tp, tn, fp, fn = 2, 3, 1, 2
    assert scores["matthews"] == pytest.approx(
        (tp * tn - fp * fn) / ((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)) ** 0.5
    )


NUMBERS = st.lists(st.tuples(st.integers(-5, 5), st.floats(-100, 100, width=16)), min_size=2, max_size=30)


@given(NUMBERS)
def test_correlations_are_those_of_scipy(pairs):
    scipy_stats = pytest.importorskip("scipy.stats")
    gold, found = map(list, zip(*pairs))
    scores = regression_scores(gold, found)
    if len(set(gold)) == 1 or np.ptp(found) < 1e-3:
        assert len(set(gold)) > 1 or scores["pearson"] == scores["spearman"] == 0
        return
    assert scores["pearson"] == pytest.approx(scipy_stats.pearsonr(gold, found)[0], abs=1e-9)
    assert scores["spearman"] == pytest.approx(scipy_stats.spearmanr(gold, found)[0], abs=1e-9)
    assert scores["mean_error"] == pytest.approx(np.mean(np.abs(np.subtract(gold, found))))


@pytest.mark.parametrize("constant", [0.1, 0.7, -1e200, 0.0])
def test_a_constant_correlates_with_nothing_and_large_numbers_do_not_overflow(constant):
    for gold, found in (([constant] * 6, [0.1] * 6), ([1.0, 2.0, 3.0], [constant] * 3)):
        scores = regression_scores(gold, found)
        assert scores["pearson"] == scores["spearman"] == 0.0
    assert regression_scores([1e200, 2e200, 3e200], [3.0, 2.0, 1.0])["pearson"] == pytest.approx(-1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: classification_scores(["a"], [], LABELS), "Received: 1 in gold, 0 in the prediction"),
        (lambda: classification_scores([], [], LABELS), "at least one"),
        (lambda: classification_scores(["a"], ["z"], LABELS), r"must be in \['a', 'b', 'c'\]. Received: z"),
        (lambda: regression_scores([1.0], [float("nan")]), "finite numbers"),
        (lambda: regression_scores([1.0], [1.0, 2.0]), "the same number of values"),
    ],
)
def test_what_cannot_be_scored_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_tokens_in_one_string_are_no_sentences():
    for sentences in ((["aa", "b"], ["NN", "V"], ["NN", "V"]), ([["aa"]], ["N"], [["N"]])):
        with pytest.raises(TypeError, match="Each sentence must be a list of tokens, and of tags. Received: "):
            token_scores(*sentences)
    with pytest.raises(TypeError, match="`training_words` must be words, not a string of them. Received: 'aa b'"):
        token_scores([["aa"]], [["N"]], [["N"]], training_words="aa b")


def test_tokens_with_an_unknown_tag_are_not_scored():
    gold = ["N", None, "?", "-1", -1, -100]
    assert token_scores([list("abcdef")], [gold], [["N"] * 6])["tokens"] == 1

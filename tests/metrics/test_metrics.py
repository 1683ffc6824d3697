"""kcrf.metrics against SIGHAN's printed figures, conlleval's counts and counting by hand."""

import itertools
import json
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcrf.corpora import read_lines, read_segmented
from kcrf.metrics import calibration, entity_scores, segmentation_scores, tagged_word_scores, transition_report
from kcrf.metrics.bootstrap import bootstrap_difference, bootstrap_scores, span_counts
from kcrf.metrics.scores import TextMismatch
from kcrf.tags import bio, bioes, bmes

BACKENDS = ["torch"]


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
    with pytest.raises(ValueError, match="same number of lines. Received: 2 lines of gold, 1 of prediction"):
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


def conlleval_counts(gold, predicted):
    """What conlleval counts, in its way: one pass over both columns, no spans. {label: [true, found, correct]}.

    An entity begins at B, and at I after O or after another type; it ends before the next B, O or other type. It is
    correct while both columns began it together and neither ends it alone.
    """
    counts = {}
    for columns in zip(gold, predicted):
        pairs = list(zip(*columns))
        before, following = ("O", "O"), None
        for here, after in zip(pairs, [*pairs[1:], ("O", "O")]):
            begins = [tag != "O" and (tag[0] == "B" or last[1:] != tag[1:]) for last, tag in zip(before, here)]
            ends = [tag != "O" and (then[0] in "BO" or then[1:] != tag[1:]) for tag, then in zip(here, after)]
            for column, (begin, tag) in enumerate(zip(begins, here)):
                if begin:
                    counts.setdefault(tag[2:], [0, 0, 0])[column] += 1
            if any(begins):
                following = here[0][2:] if all(begins) and here[0][2:] == here[1][2:] else None
            if following is not None and all(ends):
                counts[following][2] += 1
            if any(ends):
                following = None
            before = here
    return counts


tag_pairs = st.lists(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12), max_size=4)


@given(tag_pairs)
def test_entity_scores_equal_conllevals_on_any_tags(sentences):
    scheme = bio(["A", "B", "C-D"])
    columns = [[[pair[column] for pair in sentence] for sentence in sentences] for column in (0, 1)]
    counts = conlleval_counts(*([[scheme.labels[tag] for tag in tags] for tags in column] for column in columns))
    scores = entity_scores(*([scheme.decode(tags) for tags in column] for column in columns))

    def figures(true, found, correct):
        precision, recall = correct / found if found else 0.0, correct / true if true else 0.0
        return {
            "true_entities": true,
            "found_entities": found,
            "correct": correct,
            "precision": precision,
            "recall": recall,
            "f": pytest.approx(2 * precision * recall / (precision + recall) if correct else 0.0),
        }

    total = [sum(column) for column in zip(*counts.values())] or [0, 0, 0]
    assert {key: scores[key] for key in figures(0, 0, 0)} == figures(*total)
    assert scores["types"] == {label: figures(*count) for label, count in counts.items()}
    for name in ("precision", "recall", "f"):
        values = [scores["types"][label][name] for label in counts]
        assert scores["macro"][name] == pytest.approx(np.mean(values) if values else 0.0)


def test_an_entity_counts_with_both_ends_and_its_type():
    gold = [[(0, 2, "A"), (3, 5, "B")], [], [(1, 2, "A")]]
    predicted = [[(3, 5, "A"), (0, 2, "A")], [(0, 1, "C")], []]
    scores = entity_scores(gold, predicted)
    assert [scores[key] for key in ("true_entities", "found_entities", "correct", "precision", "recall", "f")] == [
        *(3, 3, 1),
        *(1 / 3, 1 / 3, 1 / 3),
    ]
    assert list(scores["types"]) == ["A", "B", "C"] and scores["types"]["A"]["precision"] == 1 / 2
    assert scores["macro"]["f"] == pytest.approx((1 / 2 + 0 + 0) / 3)  # B is in gold alone, C in the prediction alone


@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        ([[], []], [[]], "same number of sentences. Received: 2 sentences of gold, 1 of prediction"),
        ([[]], [[(0, 1, "A"), (0, 1, "A")]], "each span only once. Received: .* in sentence 1 of the prediction"),
        (
            [["O"], ["B-A", "O"]],
            [["O"], ["B-A"]],
            "the same number of tags in sentence 2. Received: 2 tags in sentence 2 of gold, 1 of",
        ),
        (
            [[(0, 2, "Li", "PER")]],
            [[(0, 2, "Li", "LOC")]],
            r"\(start, end, label\), .* \(0, 2, 'Li', 'PER'\) in sentence 1",
        ),
    ],
)
def test_entities_that_cannot_be_compared_are_refused(gold, predicted, message):
    with pytest.raises(ValueError, match=message):
        entity_scores(gold, predicted)


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=1, max_size=40), st.integers(1, 12))
def test_calibration_equals_a_count_by_hand(items, bins):
    confidences, right = [number / 20 for number, _ in items], [flag for _, flag in items]
    rows, error = calibration(confidences, right, bins)
    assert [row[:2] for row in rows] == [(i / bins, (i + 1) / bins) for i in range(bins)]
    expected = 0.0
    for low, high, count, mean, share in rows:
        inside = [(c, r) for c, r in zip(confidences, right) if low <= c < high or c == high == 1]
        assert count == len(inside) and (count or mean is share is None)
        if inside:
            assert mean == pytest.approx(sum(c for c, _ in inside) / count)
            assert share == pytest.approx(sum(r for _, r in inside) / count)
            expected += abs(sum(c - r for c, r in inside)) / len(items)
    assert error == pytest.approx(expected)


def test_calibration_without_items_or_with_impossible_ones():
    rows, error = calibration([], [])
    assert error is None and [row[2:] for row in rows] == [(0, None, None)] * 10
    with pytest.raises(ValueError, match="from 0 to 1. Received: 1.5"):
        calibration([0.5, 1.5], [True, True])
    with pytest.raises(ValueError, match="from 0 to 1. Received: nan"):
        calibration([float("nan")], [True])
    with pytest.raises(ValueError, match=r"shape \(1,\), right of shape \(2,\), bins=10"):
        calibration([0.5], [True, False])


def test_the_transition_report_counts_and_measures():
    scheme = bmes()
    transitions = np.where(scheme.allowed_transitions, 1.0, -1.0)
    emissions = [[3.0, 1.0, 0.0, 0.0], [0.0, 0.0, 4.0, 1.0], [9.0, 8.0, 0.0, 0.0]]
    report = transition_report(transitions, scheme, emissions)
    assert report == {"illegal_above_legal": 0, "illegal": 8, "size": 1.0, "gap": 2.0, "ratio": 0.5}
    assert transition_report(-transitions, scheme, emissions)["illegal_above_legal"] == 8
    transitions[0, 2] = 1.5  # s to m above s to b
    assert transition_report(transitions, scheme, emissions)["illegal_above_legal"] == 1


def test_the_bootstrap_interval_is_that_of_all_draws_there_are():
    """Of 4 sentences there are 256 equally likely draws, which can be enumerated."""
    first, second = (
        np.array([[3, 4, 4], [0, 2, 1], [5, 5, 6], [1, 3, 2]]),
        np.array([[2, 4, 3], [1, 2, 2], [5, 5, 5], [0, 3, 3]]),
    )

    def f1(counts):
        right, gold, found = counts.sum(0)
        precision, recall = right / found, right / gold
        return 2 * precision * recall / (precision + recall) if right else 0.0

    draws = [list(draw) for draw in itertools.product(range(4), repeat=4)]
    exact = np.array([f1(first[draw]) - f1(second[draw]) for draw in draws])
    difference, low, high = bootstrap_difference(first, second, level=0.8, samples=50_000)
    assert difference == pytest.approx(f1(first) - f1(second))
    # Quantiles of a discrete distribution: the share of draws below and up to each contains the wanted one.
    for value, share in ((low, 0.1), (high, 0.9)):
        assert np.mean(exact < value - 1e-9) - 0.01 < share < np.mean(exact <= value + 1e-9) + 0.01
    again = bootstrap_difference(first, second, level=0.8, samples=50_000)
    assert again == (difference, low, high)
    assert bootstrap_difference(second, first, level=0.8, samples=50_000) == pytest.approx((-difference, -high, -low))


def test_the_bootstrap_of_groups_is_that_of_the_mean_of_their_f1():
    groups = [np.array([[1, 2, 2], [3, 3, 4]]), np.array([[0, 1, 1], [2, 2, 2], [1, 4, 2]])]
    other = [group * [0, 1, 1] for group in groups]
    first, second = (
        np.concatenate([np.stack([group * (k == n) for k in range(2)], axis=1) for n, group in enumerate(part)])
        for part in (groups, other)
    )
    difference, low, high = bootstrap_difference(first, second)
    sums = [group.sum(0) for group in groups]
    assert difference == pytest.approx(sum(2 * c / (g + p) for c, g, p in sums) / 2)
    rng, expected = np.random.default_rng(0), []
    for drawn in rng.multinomial(5, np.full(5, 1 / 5), 2000):
        sums = [drawn[:2] @ groups[0], drawn[2:] @ groups[1]]
        expected.append(sum(2 * c / max(1, g + p) for c, g, p in sums) / 2)
    assert (low, high) == pytest.approx(np.quantile(expected, [0.025, 0.975]))


def test_a_bootstrap_of_f1_has_the_spread_of_a_sample_mean():
    """Where every sentence has one word, F1 is the share of sentences that are right: its spread is known."""
    right = np.arange(400) % 4 > 0
    samples = bootstrap_scores(np.stack([right, np.ones(400, int), np.ones(400, int)], axis=1))
    assert samples.shape == (2000,)
    assert abs(samples.mean() - 0.75) < 0.005
    assert abs(samples.std() - np.sqrt(0.75 * 0.25 / 400)) < 0.002


def test_a_bootstrap_of_f1_is_that_of_the_sentences_drawn():
    values = bootstrap_scores(np.array([[1, 2, 3], [1, 1, 1]]), samples=200)
    assert {round(value, 9) for value in values.tolist()} == {round(2 * 1 / 5, 9), round(2 * 2 / 7, 9), 1.0}


def test_equal_taggers_do_not_differ_and_other_sentences_are_refused():
    gold = [[(0, 2, "A")], [], [(1, 2, "B"), (3, 4, "A")]]
    found = [[(0, 2, "A", 0.5)], [(0, 1, "A", 0.1)], [(1, 2, "A", 0.3), (3, 4, "A", 0.9)]]
    counts = span_counts(gold, found)
    assert counts.tolist() == [[1, 1, 1], [0, 0, 1], [1, 2, 2]]
    assert bootstrap_difference(counts, counts) == (0.0, 0.0, 0.0)
    assert 2 * counts[:, 0].sum() / counts[:, 1:].sum() == entity_scores(gold, [[s[:3] for s in f] for f in found])["f"]
    with pytest.raises(ValueError, match=r"at least one sentence. Received: shapes \(3, 3\) and \(2, 3\)"):
        bootstrap_difference(counts, counts[:2])
    with pytest.raises(ValueError, match="at least one"):
        bootstrap_difference(counts[:0], counts[:0])


@dataclass
class Found:
    start: int
    end: int
    text: str
    label: str


AS = {
    "tuples": lambda *spans: [(*span, 0.5) for span in spans],
    "lists": lambda *spans: [list(span) for span in spans],
    "dicts": lambda *spans: [{"end": b, "label": label, "start": a, "text": "x"} for a, b, label in spans],
    "objects": lambda *spans: [Found(a, b, "x", label) for a, b, label in spans],
}


@pytest.mark.parametrize("gold", AS)
@pytest.mark.parametrize("predicted", AS)
def test_entities_are_spans_of_any_kind(gold, predicted):
    scores = entity_scores([AS[gold]((0, 2, "PER"), (4, 6, "LOC"))], [AS[predicted]((0, 2, "PER"), (4, 7, "LOC"))])
    assert (scores["true_entities"], scores["found_entities"], scores["correct"]) == (2, 2, 1)
    assert scores["types"]["PER"]["f"] == 1.0 and scores["types"]["LOC"]["f"] == 0.0


@given(st.lists(st.lists(st.integers(0, 4), max_size=9), min_size=1, max_size=4), st.sampled_from([bio, bioes]))
def test_entities_are_lists_of_tags_too(numbers, make):
    """The spans of tags, of any order, are those of `TagScheme.decode`, which is another implementation."""
    scheme = make(["PER", "LOC"])
    tags = [[scheme.labels[number] for number in row] for row in numbers]
    spans = [scheme.decode(row) for row in numbers]
    assert entity_scores(tags, spans) == entity_scores(spans, spans)


@pytest.mark.parametrize(
    "sentence",
    [
        "B-PER",
        [("0", "2", "PER")],
        [(0, 2)],
        [{"start": 0, "end": 2}],
        [3],
        ["PER"],
        [(0, 2, None)],
        3,
        ["B-PER", (0, 1, "X")],
    ],
)
def test_what_is_no_list_of_spans_or_tags_is_refused(sentence):
    with pytest.raises(ValueError, match="(sentence 1 of the gold|as sentence 1 of the gold)"):
        entity_scores([sentence], [[]])


@pytest.mark.parametrize("words", [["今天", "", "好"], ["今天好", ""]])
def test_empty_words_are_not_counted(words):
    """Python's `"今天  好".split(" ")` has one; the script of SIGHAN has none."""
    for score, parts in (
        (segmentation_scores, ([words], [["今天", "好"]])),
        (tagged_word_scores, ([pairs(words)],) * 2),
    ):
        with pytest.raises(ValueError, match="Words must not be empty. Received: .*''"):
            score(*parts)


def pairs(words):
    return [(word, "n") for word in words]


@pytest.mark.parametrize(
    ("score", "gold"), [(segmentation_scores, [["今天"]]), (tagged_word_scores, [[("今天", "t")]])]
)
def test_a_string_is_no_list_of_training_words(score, gold):
    """Its characters would be the known words, and 今天 unknown."""
    with pytest.raises(TypeError, match="`training_words` must be words, not a string of them. Received: '今天 天气'"):
        score(gold, gold, "今天 天气")


def test_a_string_is_no_sentence_of_words():
    with pytest.raises(
        TypeError, match="sentence 1 must be a list of words. Received: a string, '今天 天气'; use text.split"
    ):
        segmentation_scores(["今天 天气"], [["今天", "天气"]])


@pytest.mark.parametrize("words", [["今天", "气象"], ["今天/n"], [("今天", "n", 1)]])
def test_words_without_their_classes_are_refused(words):
    """A word of two characters would else be unpacked to a word and its class."""
    with pytest.raises(ValueError, match=r"sentence 1 must be a list of \(word, class\). Received: "):
        tagged_word_scores([words], [words])

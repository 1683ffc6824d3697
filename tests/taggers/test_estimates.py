"""Tests of kcrf.taggers.estimates: against the enumeration of all analyses, and against real scores."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from decoders import parts_of

from kcrf.corpora import load_mini
from kcrf.linear import LinearModel
from kcrf.networks.linear_networks import LinearTaggingNetwork
from kcrf.readers import CharacterNGrams, CharacterReader, Vocabulary, WordReader
from kcrf.readers.words import WordVocabulary
from kcrf.runs import Settings
from kcrf.runs.formats import read_predictions
from kcrf.runs.names import PREDICTIONS
from kcrf.taggers import EntityRecognizer, WordSegmenter, load_tagger
from kcrf.taggers.decoder import Decoder
from kcrf.taggers.estimates import HeldOut, estimate_of, held_out_of, unseen_counts
from kcrf.tags import bio, bioes, bmes, classes
from kcrf.training import train_tagger

BACKENDS = ["torch"]
SCHEMES = [bmes(), bmes(["n", "v"]), bio(["A", "B"]), bioes(["A"]), classes(["A", "B"])]


def decoder_of(scheme):
    """A decoder with random scores, which favors nothing that the scheme forbids."""
    random, reader = np.random.default_rng(5), CharacterReader(None, None, CharacterNGrams(256))
    scores = random.normal(size=(256, len(scheme))).astype("float32") / 2
    model = LinearModel(scheme, scores, random.normal(size=(len(scheme),) * 2), constraints=True)
    return Decoder(LinearTaggingNetwork(model, temperature=1.3), reader)


def analyses(decoder, text):
    """Every analysis that the scheme allows, with its probability, by enumeration."""
    scheme, model = decoder.scheme, decoder.network.model
    emissions = decoder.emissions([text]).astype(float)
    paths = [path for path in product(range(len(scheme)), repeat=len(text)) if not scheme.violations(path)]
    scores = [
        emissions[range(len(path)), path].sum() + model.transitions[list(path[:-1]), list(path[1:])].sum()
        for path in paths
    ]
    weights = np.exp((np.array(scores) - max(scores)) / 1.3)
    return [(scheme.decode(path), weight) for path, weight in zip(paths, weights / weights.sum(), strict=True)]


@pytest.mark.parametrize("scheme", SCHEMES, ids=["words", "classes of words", "bio", "bioes", "tokens"])
def test_expected_numbers_are_those_of_all_analyses(scheme):
    decoder, texts = decoder_of(scheme), ["甲乙丙丁", "乙", "丙丙甲"]
    spans_of_texts, begins = decoder.spans_and_begins(parts_of(texts))
    for text, spans, begin in zip(texts, spans_of_texts, begins, strict=True):
        ways = analyses(decoder, text)
        right = sum(p * sum(span.key in gold for span in spans) for gold, p in ways)
        assert sum(span.probability for span in spans) == pytest.approx(right, abs=1e-4)
        for label, number in zip(scheme.types or [None], begin, strict=True):
            counts = [p * sum(label is None or span[2] == label for span in gold) for gold, p in ways]
            assert number == pytest.approx(sum(counts), abs=1e-4)


def estimate(predictions, true, held_out=None, unseen=(0, 0)):
    return estimate_of([(3, predictions, true.values(), np.array(unseen))], true, held_out or HeldOut())


def held_out_with(probabilities, right, unseen=(0, 0)):
    gold, more = [(0, 1, "A")], {"text": "", "unseen": unseen}
    pairs = zip(probabilities, right, strict=True)
    rows = [{"found": [(*gold[0], p)], "gold": gold if is_right else [], **more} for p, is_right in pairs]
    return held_out_of(rows, None)


def test_scores_and_intervals_from_probabilities():
    predictions, true = [("A", 0.9), ("A", 0.7)], {"A": 2.0, "B": 0.5}
    estimated = estimate(predictions, true)
    together, by_label = estimated.all, estimated.labels
    assert (together.found, together.right, together.true) == (2, pytest.approx(1.6), 2.5)
    assert together.precision.value == pytest.approx(0.8) and together.recall.value == pytest.approx(0.64)
    assert together.f.value == pytest.approx(2 * 1.6 / 4.5)
    width = 1.96 * np.sqrt(0.9 * 0.1 + 0.7 * 0.3) / 2  # of two independent events
    assert together.precision.low == pytest.approx(0.8 - width) and together.precision.high == 1.0
    assert by_label["B"].precision is None and by_label["B"].recall.value == 0
    held_out = held_out_with(np.full(20, 0.9), np.arange(20) < 15)
    assert estimate(predictions, true, held_out).all.precision.low < together.precision.low


def test_notes_need_a_difference_that_is_not_chance():
    random = np.random.default_rng(1).random(400) / 4 + 0.75
    many, few = (held_out_with(p, np.ones(len(p)), (1, 100)) for p in (random, random[:4]))
    below = [("A", random.mean() - 0.05)] * 50
    assert "unlike the training data" in estimate(below, {"A": 50.0}, many).notes[0]
    assert estimate([("A", few.mean - 0.05)], {"A": 50.0}, few).notes == ()
    assert "7.0% of the characters, words or n-grams" in estimate([], {"A": 0.0}, many, (7, 100)).notes[0]
    for usual in ((6, 100), (0, 0)):  # nearly as many, or not known
        assert estimate([], {"A": 0.0}, held_out_with(random, np.ones(400), usual), (7, 100)).notes == ()


@pytest.mark.parametrize("task", ["cws", "ner"])
def test_an_estimate_is_near_the_real_scores(task, tmp_path):
    corpus = load_mini() if task == "cws" else load_mini("ner")
    settings = Settings(task=task, encoder="linear", augment=0)
    tagger, scores = train_tagger(settings, corpus.train, corpus.valid, corpus.test, out=tmp_path / "run")
    texts = ["".join(s) for s in corpus.test] if task == "cws" else [s.text for s in corpus.test]
    estimate = load_tagger(tmp_path / "run").estimate(texts)
    for name, key in (("precision", "precision"), ("recall", "recall"), ("f", "f")):
        expected = getattr(estimate.all, name)
        assert expected.low - 0.02 <= scores["test"][key] <= expected.high + 0.02
    assert estimate.all.found == scores["test"]["test_words" if task == "cws" else "found_entities"]
    real = scores["test"]["true_words" if task == "cws" else "true_entities"]
    assert estimate.all.true == pytest.approx(real, abs=1)  # by the ratio on these very texts
    assert set(estimate.labels) == set(tagger.labels) and estimate.texts == len(texts)
    assert not any("unlike" in note for note in estimate.notes)
    plain = estimate.as_dict()
    assert plain["f"] == pytest.approx(list(estimate.all.f), abs=1e-4)
    assert plain["labels"].keys() == estimate.labels.keys()


def test_texts_unlike_the_training_data_and_models_without_predictions_are_noted(tmp_path):
    corpus, strange = load_mini(), ["qwzx gklm" * 3, "ﾏﾘｱ様がみてる" * 3] * 5
    train_tagger(Settings(encoder="linear"), corpus.train, corpus.valid, out=tmp_path / "run")
    confidence, unseen = WordSegmenter(tmp_path / "run").estimate(strange).notes
    assert "unlike the training data" in confidence and "are new to the model" in unseen
    (note,) = WordSegmenter().estimate(["今天天气真好"]).notes
    assert "calibration of these probabilities is not known, and the intervals contain chance alone" in note
    assert EntityRecognizer.estimate is WordSegmenter.estimate


def test_confidence_is_compared_with_that_of_the_same_minimum_probability(tmp_path):
    corpus = load_mini("ner")
    settings = Settings(task="ner", encoder="linear", augment=0, min_probability=0.3)
    train_tagger(settings, corpus.train[:60], corpus.valid, corpus.test, out=tmp_path / "run")
    texts, run = [sentence.text for sentence in corpus.test], tmp_path / "run"
    for recognizer in (EntityRecognizer(run), EntityRecognizer(run, min_probability=0.3)):
        assert recognizer.estimate(texts).notes == ()
    for recognizer in (EntityRecognizer(run, min_probability=0.01), EntityRecognizer(run, coverage=0.8)):
        (note,) = recognizer.estimate(texts).notes
        assert "is not known: held-out texts have predictions of another minimum probability" in note
        assert "are new to the model" in recognizer.estimate(["qwzxgklm"] * 9).notes[1]


def test_characters_of_pairs_are_counted_in_both_texts_and_no_tab_between_them(tmp_path):
    rows = [(f"猫{number % 7}", f"狗咬{number % 5}", "ab"[number % 2]) for number in range(60)]
    train_tagger(Settings(task="classify", epochs=1), rows[:40], rows[40:], out=tmp_path / "run")
    tagger = load_tagger(tmp_path / "run")
    unseen_in = partial(unseen_counts, tagger.network, tagger.reader)
    assert unseen_in(["猫1\t狗x2"]).tolist() == [1, 5]
    held_out = held_out_of(read_predictions(tmp_path / "run" / PREDICTIONS), unseen_in)
    assert held_out.unseen.tolist() == [0, 20 * 5]
    assert tagger.estimate([row[:2] for row in rows]).notes == ()


@pytest.mark.parametrize("units", ["words", "characters"])
def test_new_words_and_characters_are_counted_as_a_set_would_count_them(units):
    known, texts = "ab cd ab cd", ["ab xy cd", "zz"]
    if units == "words":
        reader, parts = WordReader(WordVocabulary.of(known.split())), "ab xy cd zz".split()
    else:
        reader, parts = CharacterReader(Vocabulary.of([known])), "".join(texts)
    new = sum(part not in known for part in parts)
    assert unseen_counts(None, reader, texts).tolist() == [new, len(parts)]


def test_any_number_of_texts_is_estimated_in_parts(monkeypatch):
    texts, segmenter = ["今天天气真好", "北京大学生前来应聘", "他们去了"] * 3, WordSegmenter()
    whole = segmenter.estimate(texts)
    monkeypatch.setattr("kcrf.taggers.suggestions._AT_ONCE", 2)
    assert segmenter.estimate(iter(texts)).as_dict() == whole.as_dict()
    with pytest.raises(TypeError, match="must be a list of strings"):
        segmenter.estimate("今天天气真好")


def texts_of_one_topic(random, count):
    """Rows of predictions with the probability 0.6, all right or all wrong in a text, and real ones that are missed."""
    rows, most = [], 6
    for _ in range(count):
        found, missed = [(place, place + 1, "A") for place in range(random.integers(1, most))], random.poisson(3)
        right = found if random.random() < 0.6 else []
        gold = right + [(most + place, most + place + 1, "A") for place in range(missed)]
        rows.append({"text": "", "unseen": (0, 0), "found": [(*span, 0.6) for span in found], "gold": gold})
    return rows


@pytest.mark.parametrize("count", [5, 10, 30])
def test_intervals_contain_the_scores_of_a_few_texts_whose_predictions_are_right_or_wrong_together(count):
    random, inside = np.random.default_rng(2), np.zeros(3)
    held_out = held_out_of(texts_of_one_topic(random, 500), None)
    for _ in range(300):
        rows = texts_of_one_topic(random, count)
        found = sum(len(row["found"]) for row in rows)
        right, real = (
            sum(span[:3] in row["gold"] for row in rows for span in row["found"]),
            sum(len(row["gold"]) for row in rows),
        )
        expected = estimate([("A", 0.6)] * found, {"A": 0.6 * found + 3 * count}, held_out).all
        scores = right / found, right / real, 2 * right / (found + real)
        ranges = expected.precision, expected.recall, expected.f
        inside += [interval.low <= score <= interval.high for score, interval in zip(scores, ranges, strict=True)]
    assert (inside / 300 > 0.9).all()


def test_folds_that_find_nothing_say_how_many_entities_there_are():
    rows = [{"text": "", "unseen": (0, 0), "found": [], "gold": [(0, 1, "A")] * 4, "expected": 0.5}] * 10
    expected = estimate([("A", 0.8)] * 5, {"A": 6.0}, held_out_of(rows, None)).all
    assert expected.true == pytest.approx(6.0 * (40 + 1) / (5 + 1)) and expected.recall.value < 0.1
    assert (expected.precision.low, expected.precision.high) == (0.0, 1.0)  # nothing is known
    assert "is not known: the model has no predictions" in estimate([], {"A": 6.0}, held_out_of(rows, None)).notes[0]
    assert estimate([("A", 0.8)], {"A": 6.0}, held_out_of([], None)).all.true == 6.0


def texts_of_models(random, count, factors):
    """Rows of texts in which models expect other numbers of entities than there are, each by a factor of its own."""
    rows = []
    for number in range(count):
        real, fold = random.poisson(3), number % len(factors)
        gold = [(place, place + 1, "A") for place in range(real)]
        found = [(*span, 0.8) for span in gold if random.random() < 0.4]
        found += [(20 + place, 21 + place, "A", 0.8) for place in range(random.binomial(len(found), 0.25))]
        row = {"text": "", "unseen": (0, 0), "found": found, "gold": gold, "fold": fold}
        rows.append(row | {"expected": 3 / factors[fold]})
    return rows


@pytest.mark.parametrize("differs", [False, True])
def test_intervals_contain_the_recall_of_a_model_whose_ratio_differs_from_those_of_the_folds(differs):
    random, inside, width = np.random.default_rng(4), 0, 0.0
    for _ in range(300):
        factors = np.exp(random.normal(0.5, 0.4 * differs, 5))
        held_out = held_out_of(texts_of_models(random, 120, factors[:4]), None)
        rows = texts_of_models(random, 60, factors[4:])
        found, real = (sum(len(row[name]) for row in rows) for name in ("found", "gold"))
        right = sum(span[:3] in row["gold"] for row in rows for span in row["found"])
        recall = estimate([("A", 0.8)] * found, {"A": sum(row["expected"] for row in rows)}, held_out).all.recall
        inside += recall.low <= right / real <= recall.high
        width += (recall.high - recall.low) / 300
    assert inside / 300 > (0.82 if differs else 0.93)  # 0.44 and 0.97 without the folds
    assert width < (0.65 if differs else 0.22)


def test_the_number_of_tokens_is_known():
    """Each token is a span, and expected to be one: their number adds nothing to the interval."""
    tokens, texts = [(place, place + 1, "A", 0.8) for place in range(5)], range(40)
    rows = [{"text": "", "unseen": (0, 0), "found": tokens, "expected": 5.0} for _ in texts]
    rows = [row | {"gold": [(*span[:2], "AAAAB"[(span[0] + n) % 5]) for span in tokens]} for n, row in enumerate(rows)]
    scores = estimate([("A", 0.8)] * 50, {"A": 50.0}, held_out_of(rows, None)).all
    assert scores.recall == pytest.approx(scores.precision, abs=1e-3)

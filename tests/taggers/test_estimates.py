"""Tests of kcrf.taggers.estimates: against the enumeration of all analyses, and against real scores."""

from itertools import product

import numpy as np
import pytest
from decoders import parts_of

from kcrf.corpora import load_mini
from kcrf.linear import LinearModel
from kcrf.networks.linear_networks import LinearTaggingNetwork
from kcrf.readers import CharacterNGrams, CharacterReader
from kcrf.runs import Settings
from kcrf.taggers import EntityRecognizer, WordSegmenter, load_tagger
from kcrf.taggers.decoder import Decoder
from kcrf.taggers.estimates import HeldOut, expected_scores
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


def test_scores_and_intervals_from_probabilities():
    together, by_label = expected_scores(["A", "B"], {"A": [0.9, 0.7], "B": []}, {"A": 2.0, "B": 0.5}, None)
    assert (together.found, together.right, together.true) == (2, pytest.approx(1.6), 2.5)
    assert together.precision.value == pytest.approx(0.8) and together.recall.value == pytest.approx(0.64)
    assert together.f.value == pytest.approx(2 * 1.6 / 4.5)
    width = 1.96 * np.sqrt(0.9 * 0.1 + 0.7 * 0.3) / 2  # of two independent events
    assert together.precision.low == pytest.approx(0.8 - width) and together.precision.high == 1.0
    assert by_label["B"].precision is None and by_label["B"].recall.value == 0
    less_sure, _ = expected_scores(["A"], {"A": [0.9, 0.7]}, {"A": 2.0}, HeldOut(20, expected=18.0, right=15))
    assert less_sure.precision.low < together.precision.low


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
    assert set(estimate.labels) == set(tagger.labels) and estimate.texts == len(texts)
    assert not any("unlike" in note for note in estimate.notes)
    plain = estimate.as_dict()
    assert plain["f"] == estimate.all.f.as_list() and plain["labels"].keys() == estimate.labels.keys()


def test_texts_unlike_the_training_data_and_models_without_predictions_are_noted(tmp_path):
    corpus = load_mini()
    train_tagger(Settings(encoder="linear"), corpus.train, corpus.valid, out=tmp_path / "run")
    (note,) = WordSegmenter(tmp_path / "run").estimate(["qwzx gklm" * 3, "ﾏﾘｱ様がみてる" * 3] * 5).notes
    assert "unlike the training data" in note
    (note,) = WordSegmenter().estimate(["今天天气真好"]).notes
    assert "calibration of the model is not known" in note
    assert EntityRecognizer.estimate is WordSegmenter.estimate

"""Tests of kcrf.training.linear_part.

The average of a network and a linear model: beside a linear model alone, and with averages that are written out.
"""

import numpy as np
import pytest
from decoders import keys
from numpy.testing import assert_allclose, assert_array_equal

from kcrf.backend import backend_name, keras
from kcrf.corpora import Sentence, load_mini
from kcrf.linear import LinearModel
from kcrf.networks.keras_networks import KerasTaggingNetwork
from kcrf.networks.linear_networks import LinearTaggingNetwork
from kcrf.networks.tagging import build_network, output_of_standard
from kcrf.readers import CharacterNGrams, CharacterReader, Vocabulary
from kcrf.runs import DataFacts, ModelConfig, RunFolder, Settings, read_run, resolve
from kcrf.runs.names import LINEAR
from kcrf.taggers import load_tagger
from kcrf.taggers.decoder import Decoder
from kcrf.tags import bmes
from kcrf.training import resume_tagger, train_tagger
from kcrf.training.linear_part import LinearPart

CORPUS = load_mini()
PARTS = (CORPUS.train[:24], CORPUS.valid[:12])
TOWNS = "Leeds York Turin Bergen Lyon Bonn Bath Nice Split Kyiv Oslo Riga".split()
TRIPS = [Sentence(f"From {a} to {b} .", [(5, 5 + len(a), "LOC")]) for a in TOWNS for b in TOWNS]
ENGLISH = (TRIPS[::4], TRIPS[1::10])
SMALL = {"width": 8, "depth": 1, "epochs": 1, "batch_size": 8}
TEXTS = ["".join(words) for words in CORPUS.test[:30]]
BUCKETS = 2**10
READER = CharacterReader(Vocabulary.of(TEXTS), ngrams=CharacterNGrams(BUCKETS))


def linear_model(seed):
    random, model = np.random.default_rng(seed), LinearModel.new(bmes(), BUCKETS)
    model.scores[1:] = random.normal(size=(BUCKETS - 1, 4))
    model.transitions[:] = random.normal(size=(4, 4))
    return model


def network(standards=()):
    """A network whose weights are all random, also those of the n-grams."""
    config = ModelConfig(**{**vars(Settings().part(ModelConfig)), "crf_lr_multiplier": 7.0, "width": 8, "depth": 1})
    model, random = build_network(config, bmes(), READER, standards=standards), np.random.default_rng(3)
    model.set_weights([0.3 * random.normal(size=weight.shape) for weight in model.get_weights()])
    return model


def tagger(model):
    return Decoder(KerasTaggingNetwork(model, bmes()), READER)


def linear_tagger(model):
    return Decoder(LinearTaggingNetwork(model), READER)


def transitions(model, name="CRF"):
    layer = model.get_layer(name)
    return np.where(bmes().allowed_transitions, np.asarray(keras.ops.convert_to_numpy(layer.trans)), 0)


@pytest.mark.once
def test_with_all_of_the_weight_the_tags_are_those_of_the_linear_model():
    linear, model = linear_model(0), network()
    wanted = keys(linear_tagger(linear), TEXTS)
    assert keys(tagger(model), TEXTS) != wanted
    with LinearPart({None: linear}, (1.0,)).averaged(model, 1.0):
        assert keys(tagger(model), TEXTS) == wanted


@pytest.mark.parametrize("standards", [(), ("a", "b")])
def test_scores_are_averages_and_afterwards_those_of_the_network(standards):
    weight, model, own = 0.3, network(standards), None
    linear = {standard: linear_model(seed) for seed, standard in enumerate(standards or (None,))}
    own = model.get_weights()

    def scores(standard):
        head = model if standard is None else output_of_standard(model, standard)
        of_crf = transitions(model, "CRF" if standard is None else f"CRF-{standard}")
        return tagger(head).emissions(TEXTS), of_crf

    alone = {standard: scores(standard) for standard in linear}
    with LinearPart(linear, (weight,)).averaged(model, weight):
        for standard, part in linear.items():
            emissions, moves = scores(standard)
            wanted = (1 - weight) * alone[standard][0] + weight * linear_tagger(part).emissions(TEXTS)
            assert_allclose(emissions, wanted, rtol=1e-4, atol=1e-4)
            moves_alone = np.where(bmes().allowed_transitions, part.transitions, 0)
            assert_allclose(moves, (1 - weight) * alone[standard][1] + weight * moves_alone, rtol=1e-4, atol=1e-5)
    for before, after in zip(own, model.get_weights(), strict=True):
        assert_array_equal(before, after)


@pytest.mark.once
def test_a_run_keeps_the_average_of_the_network_alone_and_of_the_linear_run(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # standard error is a terminal, which shows progress
    for name, settings in {
        "alone": {**SMALL, "linear_weight": 0.0},
        "average": {**SMALL, "linear_weight": 0.25},
        "linear": {"encoder": "linear"},
    }.items():
        train_tagger(Settings(**settings), *PARTS, out=tmp_path / name)
        assert ("training a linear model" in capsys.readouterr().err) == (name == "average")
    arrays = RunFolder(tmp_path / "linear").read_arrays(LINEAR)
    alone, average = (load_tagger(tmp_path / name).model for name in ("alone", "average"))
    scores = [model.get_layer("NGrams").get_weights()[0] * 10 for model in (alone, average)]
    assert_allclose(scores[1], 0.75 * scores[0] + 0.25 * arrays["scores"] * arrays["scale"], rtol=1e-4, atol=1e-6)
    moves_alone = np.where(bmes().allowed_transitions, arrays["transitions"], 0)
    assert_allclose(transitions(average), 0.75 * transitions(alone) + 0.25 * moves_alone, rtol=1e-4, atol=1e-5)
    kernels = [model.get_layer("Emissions").get_weights()[0] for model in (alone, average)]
    assert_allclose(kernels[1], 0.75 * kernels[0], rtol=1e-5)
    assert_array_equal(*(model.get_layer("Projection").get_weights()[0] for model in (alone, average)))


@pytest.mark.once
def test_with_english_words_the_linear_model_alone_scores_n_grams(tmp_path):
    for name, settings in {
        "alone": {**SMALL, "linear_weight": 0.0},
        "average": {**SMALL, "linear_weight": 0.25},
        "linear": {"encoder": "linear"},
    }.items():
        train_tagger(Settings(task="ner", **settings), *ENGLISH, out=tmp_path / name)
    arrays = RunFolder(tmp_path / "linear").read_arrays(LINEAR)
    alone, average = (load_tagger(tmp_path / name).model for name in ("alone", "average"))
    scores = [model.get_layer("NGrams").get_weights()[0] * 10 for model in (alone, average)]
    assert scores[0].any()
    assert_allclose(scores[1], 0.25 * arrays["scores"] * arrays["scale"], rtol=1e-4, atol=1e-6)


@pytest.mark.slow
@pytest.mark.once
def test_auto_keeps_the_better_of_the_network_and_the_average_after_each_epoch(tmp_path):
    corpus, settings = load_mini("ner"), {**SMALL, "task": "ner", "epochs": 4, "learning_rate": 0.02}
    rows = {}
    for weight in (0.0, 0.5, "auto"):
        folder = tmp_path / str(weight)
        train_tagger(Settings(**settings, linear_weight=weight), corpus.train[:60], corpus.valid[:30], out=folder)
        rows[weight] = read_run(folder).log
    f = {weight: [row["valid_f"] for row in of_weight] for weight, of_weight in rows.items()}
    assert f["auto"] == [max(pair) for pair in zip(f[0.0], f[0.5], strict=True)]
    chosen = [0.5 if average > alone else 0.0 for alone, average in zip(f[0.0], f[0.5], strict=True)]
    assert [row["linear_weight"] for row in rows["auto"]] == chosen and "linear_weight" not in rows[0.5][0]
    winner = chosen[f["auto"].index(max(f["auto"]))]
    kept = [load_tagger(tmp_path / str(weight)).model.get_weights() for weight in ("auto", winner)]
    for one, other in zip(*kept, strict=True):
        assert_array_equal(one, other)
    if backend_name() == "torch":  # elsewhere other weights are drawn, and one of the two may win each epoch
        assert set(chosen) == {0.0, 0.5}


@pytest.mark.once
def test_auto_takes_the_linear_model_alone_if_the_network_learns_nothing(tmp_path):
    corpus, settings = load_mini("ner"), {**SMALL, "task": "ner", "epochs": 3, "patience": 1, "learning_rate": 1e-9}
    parts = corpus.train[:60], corpus.valid[:30], corpus.test[:30]
    _, scores = train_tagger(Settings(**settings, linear_weight="auto"), *parts, out=tmp_path / "auto")
    _, expected = train_tagger(Settings(task="ner", encoder="linear", augment=0), *parts, out=tmp_path / "linear")
    assert scores["test"] == expected["test"] and scores["valid"] == expected["valid"] and scores["valid"]["f"] > 0
    rows = read_run(tmp_path / "auto").log
    assert [row["linear_weight"] for row in rows[:-1]].count(1.0) == 0 and rows[-1]["linear_weight"] == 1.0
    assert rows[-1]["valid_f"] == scores["valid"]["f"] > max(row["valid_f"] for row in rows[:-1])


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.parametrize(("task", "parts", "weight"), [("cws", PARTS, 0.5), ("ner", ENGLISH, "auto")])
def test_a_run_that_is_resumed_ends_with_the_same_average(tmp_path, task, parts, weight):
    class Stops(keras.callbacks.Callback):
        def report(self, row):
            raise KeyboardInterrupt

    settings = Settings(task=task, **{**SMALL, "epochs": 2})
    assert resolve(settings, DataFacts(windows=60)).training.linear_weight == weight
    train_tagger(settings, *parts, out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train_tagger(settings, *parts, out=tmp_path / "halves", progress=Stops())
    resume_tagger(tmp_path / "halves", *parts)
    whole, halves = (load_tagger(tmp_path / name).model.get_weights() for name in ("whole", "halves"))
    for one, other in zip(whole, halves, strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"linear_weight": 1.0}, 'must be at least 0 and below 1, or "auto"'),
        ({"linear_weight": "half"}, 'must be at least 0 and below 1, or "auto"'),
        ({"linear_weight": 0.5, "ngrams": False}, "needs ngrams=True"),
        ({"linear_weight": 0.5, "head": "softmax"}, "needs head='crf'"),
        ({"linear_weight": 0.5, "encoder": "linear"}, "has no effect with encoder='linear'"),
        ({"linear_weight": 0.5, "bert": "x"}, "needs bert=None"),
        ({"linear_weight": 0.5, "teacher": "x", "teacher_temperature": 2.0}, "needs teacher_temperature=1"),
    ],
)
@pytest.mark.once
def test_a_weight_without_a_linear_part_is_refused(options, reason):
    with pytest.raises(ValueError, match=reason):
        Settings(**options)

"""Tests of kcrf.training.fit for few sentences: the network learns all of them, and another one judges the held-out."""

import json
from dataclasses import replace

import keras
import numpy as np
import pytest
from conftest import few
from kills import killed

from kcrf.corpora import load_mini
from kcrf.networks import network
from kcrf.progress_bars import quiet
from kcrf.readers.vocabulary import fold
from kcrf.runs import RunWriter, Settings, read_run
from kcrf.runs.formats import read_predictions
from kcrf.runs.names import LOG, PREDICTIONS, SCORES, VALIDATED
from kcrf.taggers import EntityRecognizer, load_tagger
from kcrf.taggers.coverage import conformal_threshold
from kcrf.taggers.estimates import held_out_of
from kcrf.tasks import task_of
from kcrf.training import fit, resume_tagger, train_tagger

SETTINGS = Settings(task="ner", width=8, depth=1, patience=2, learning_rate=0.01, seed=2)


class SeededBatches(fit.EpochBatches):
    """Validation between two epochs draws random numbers, too. With this, the next epoch does not depend on them."""

    def on_epoch_begin(self, epoch, logs=None):
        super().on_epoch_begin(epoch, logs)
        keras.utils.set_random_seed(epoch)


@pytest.fixture(scope="module", autouse=True)
def comparable():
    """Six sentences are enough to fit a temperature, so that it differs from 1; and epochs draw the same numbers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit, "EpochBatches", SeededBatches)
        patch.setattr(network, "FEWEST_TAGS", 1)
        yield


@pytest.fixture(scope="module")
def corpus():
    return load_mini("ner").train[:60]


@pytest.fixture(scope="module")
def runs(corpus, tmp_path_factory):
    """A run that learns all sentences, and one of nine tenths of them with the same held-out tenth."""
    folder = tmp_path_factory.mktemp("all")
    with quiet(True):
        train_tagger(SETTINGS, corpus, out=folder / "all")
        train_tagger(SETTINGS, *task_of("ner").hold_out(corpus, 2), out=folder / "part")
    return folder / "all", folder / "part"


def rows_of(run):
    return list(map(json.loads, (run / PREDICTIONS).read_text(encoding="utf-8").splitlines()))


def weights_of(run):
    return load_tagger(run).network.model.get_weights()


def test_the_held_out_sentences_are_judged_by_the_model_of_the_others(runs):
    whole, part = runs
    assert read_run(whole).scores == read_run(part).scores
    assert read_run(whole).settings["temperature"] == read_run(part).settings["temperature"] != 1.0
    found, others = rows_of(whole), rows_of(part)
    assert [row["found"] for row in found] == [row["found"] for row in others] and len(found) == 6
    assert [row["expected"] for row in found] == [row["expected"] for row in others]
    assert all(len(row["likely"]) == len(row["gold"]) and row["unseen"][0] < row["unseen"][1] for row in found)
    with (whole / LOG).open() as log, (part / LOG).open() as other:
        assert [line.split(",")[:3] for line in log] == [line.split(",")[:3] for line in other]
    assert not (whole / VALIDATED).exists()


def test_candidates_and_estimates_take_the_numbers_of_the_model_that_judges(runs):
    whole, _ = runs
    rows = rows_of(whole)
    limit = conformal_threshold([row["likely"] for row in rows], 0.5)
    assert EntityRecognizer(whole, coverage=0.5).decoder.min_probability == limit
    held_out = held_out_of(read_predictions(whole / PREDICTIONS), None)
    assert held_out.unseen.tolist() == np.sum([row["unseen"] for row in rows], axis=0).tolist()


@pytest.mark.once
def test_the_final_model_has_learned_all_sentences_as_long_as_was_best(runs, corpus, tmp_path, monkeypatch):
    whole, part = runs
    best = max(read_run(whole).log, key=lambda row: row["valid_f"])
    _, held_out = task_of("ner").hold_out(corpus, 2)
    ours, theirs = (EntityRecognizer(run) for run in (whole, part))
    known, fewer = (set(tagger.reader.vocabulary.characters) for tagger in (ours, theirs))
    assert fewer < known == set("".join(map(fold, "".join(s.text for s in corpus))))
    assert ours.scores(held_out)["f"] > theirs.scores(held_out)["f"]
    # the oracle: all sentences as a training set, whose epochs are counted and not judged
    monkeypatch.setattr(fit.TrainingHistory, "is_done", lambda self: len(self.rows) == best["epoch"])
    monkeypatch.setattr(fit.TrainingHistory, "ends_with", lambda self, row: len(self.rows) + 1 == best["epoch"])
    monkeypatch.setattr(fit.TrainingHistory, "_best", lambda self, rows: rows[-1] if rows else None)
    train, valid = task_of("ner").hold_out(corpus, 2)
    weight = best.get("linear_weight", 0.0)
    train_tagger(replace(SETTINGS, linear_weight=weight), [*train, *valid], valid, out=tmp_path / "oracle")
    for ours, other in zip(weights_of(whole), weights_of(tmp_path / "oracle"), strict=True):
        np.testing.assert_allclose(ours, other, atol=1e-6)


@pytest.mark.once
@pytest.mark.parametrize("name", ["_of_all_sentences", "finish_run"])
def test_a_run_that_was_stopped_goes_on_to_the_same_files(name, runs, corpus, tmp_path, monkeypatch):
    def fail(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fit, name, fail)
        with pytest.raises(KeyboardInterrupt), quiet(True):
            train_tagger(SETTINGS, corpus, out=tmp_path / "run")
    with quiet(True):
        resume_tagger(tmp_path / "run", corpus)
    for file in (PREDICTIONS, SCORES):
        assert (tmp_path / "run" / file).read_bytes() == (runs[0] / file).read_bytes()
    for ours, other in zip(weights_of(tmp_path / "run"), weights_of(runs[0]), strict=True):
        np.testing.assert_array_equal(ours, other)


@pytest.mark.once
def test_words_of_the_held_out_part_count_as_unknown_and_those_of_all_sentences_as_known(tmp_path, capsys):
    mini = load_mini()
    settings = Settings(width=8, depth=1, patience=1, learning_rate=0.01)
    train_tagger(settings, mini.train[:60], test=mini.test, out=tmp_path / "run")
    scores = read_run(tmp_path / "run").scores
    train, valid = task_of("cws").hold_out(task_of("cws").check("train", mini.train[:60]), settings.seed)
    words = [{word for s in part for word in s.texts_of(s.spans)} for part in (train, [*train, *valid])]
    tests = task_of("cws").check("test", mini.test)
    for known, part, name in ((words[0], valid, "valid"), (words[1], tests, "test")):
        all_words = [word for s in part for word in s.texts_of(s.spans)]
        rate = sum(word not in known for word in all_words) / len(all_words)
        assert scores[name]["oov_rate"] == pytest.approx(rate)
    assert "training again, on all 60 sentences, for " in capsys.readouterr().err


@pytest.mark.once
@pytest.mark.parametrize("other", [{"epochs": 1}, {"task": "classify", "patience": 1}])
def test_other_networks_learn_nine_tenths(other, corpus, tmp_path, capsys):
    settings = replace(SETTINGS, **other)
    train = corpus if settings.task == "ner" else [(f"text {number}", "ab"[number % 2]) for number in range(40)]
    train_tagger(settings, train, out=tmp_path / "run")
    assert "training again" not in capsys.readouterr().err


SMALL = Settings(task="ner", width=8, depth=1, patience=1, learning_rate=0.02, linear_weight=0.0, augment=0)
SHORT = [s for s in load_mini("ner").train if 8 < len(s.text) <= 16][:48]
TRAINING = """
from test_all_sentences import SHORT, SMALL
from kcrf.training import resume_tagger, train_tagger

if command == "resume":
    resume_tagger(folder, SHORT)
else:
    train_tagger(SMALL, SHORT, out=folder)
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "run"
    killed(folder, "nothing", "train", TRAINING)
    return folder


@pytest.mark.once
@pytest.mark.parametrize(
    "first, second",
    few(
        ("/model.weights.h5", "new.scores.json"),  # the name of the first weights, then the end
        ("new.predictions.jsonl", "new.config.json"),  # with the final weights in place
        ("/validated.weights.h5", "/state.npz"),  # complete
        (3, 4),
        (11, 2),
        (12, 1),
        (13, 3),
        everywhere=3,
        rest="slow",
    ),
)
def test_kill_9_changes_nothing(first, second, whole, tmp_path):
    run = tmp_path / "run"
    assert killed(run, first, "train", TRAINING)
    if not (run / SCORES).exists():
        killed(run, second, "resume", TRAINING)
    if not (run / SCORES).exists():
        killed(run, "nothing", "resume", TRAINING)
    with pytest.raises(FileNotFoundError, match="one that is complete"), RunWriter.resume(run):
        pass  # puts right what was left behind
    for name in ("config.json", PREDICTIONS, SCORES):
        assert (run / name).read_bytes() == (whole / name).read_bytes(), name
    for ours, other in zip(weights_of(run), weights_of(whole), strict=True):
        np.testing.assert_array_equal(ours, other)
    assert {path.name for path in run.iterdir()} == {path.name for path in whole.iterdir()}

"""Tests of kcrf.training.folds: every sentence is learned, and is judged by a model that has not learned it."""

import json
from dataclasses import replace

import numpy as np
import pytest

from kcrf.commands.main import main
from kcrf.corpora import load_mini, sentence_line
from kcrf.metrics.bootstrap import bootstrap_predictions, interval
from kcrf.progress_bars import quiet
from kcrf.runs import DataFacts, RunFolder, Settings, read_run, resolve
from kcrf.runs.names import LINEAR
from kcrf.taggers import EntityRecognizer
from kcrf.training import resume_tagger, train_tagger
from kcrf.training.folds import FOLDS, FoldsTagger

BACKENDS = ["torch"]
SETTINGS = Settings(task="ner", encoder="linear", augment=0, seed=2)


@pytest.fixture(scope="module")
def corpus():
    return load_mini("ner")


@pytest.fixture(scope="module")
def run(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("folds") / "run"
    with quiet(True):
        train_tagger(SETTINGS, corpus.train[:60], out=folder)
    return folder


def test_a_terminal_shows_one_bar_for_all_parts(corpus, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")  # takes the captured stream for a terminal
    train_tagger(replace(SETTINGS, augment=1), corpus.train[:40], out=tmp_path / "run", progress=False)
    shown = capsys.readouterr().err
    assert "training on parts, to score the model" in shown and "6/6" in shown
    assert "training a linear model" not in shown and "/30" not in shown  # no copies of three quarters of 40


def rows_of(run):
    return list(map(json.loads, (run / "predictions.jsonl").read_text(encoding="utf-8").splitlines()))


def test_the_model_is_the_one_of_all_sentences_and_the_predictions_are_not_its_own(run, corpus, tmp_path):
    rows, items = rows_of(run), corpus.train[:60]
    assert sorted(row["text"] for row in rows) == sorted(item.text for item in items)
    by_text = {item.text: item for item in items}
    train_tagger(SETTINGS, [by_text[row["text"]] for row in rows], corpus.valid, out=tmp_path / "whole")
    learned, whole = (RunFolder(path).read_arrays(LINEAR) for path in (run, tmp_path / "whole"))
    assert all(np.array_equal(learned[name], whole[name]) for name in ("scores", "transitions"))
    order = np.random.default_rng([2, FOLDS]).permutation(60)
    held_out = set(order[1::FOLDS].tolist())  # of the second fold
    texts = [rows[number]["text"] for number in range(60)]
    train = [by_text[text] for number, text in enumerate(texts) if number not in held_out]
    train_tagger(SETTINGS, train, corpus.valid, out=tmp_path / "fold")
    part = [texts[number] for number in sorted(held_out)]
    found = EntityRecognizer(tmp_path / "fold").predict(part)
    assert [[list(span.key) for span in row] for row in found] == [
        [span[:3] for span in rows[number]["found"]] for number in sorted(held_out)
    ]


def test_the_temperature_makes_as_many_predictions_right_as_their_probabilities_say(run):
    rows = rows_of(run)
    pairs = [(span[3], span[:3] in row["gold"]) for row in rows for span in row["found"]]
    expected, right = np.mean(np.array(pairs, float), axis=0)
    assert expected == pytest.approx(right, abs=0.01)
    assert read_run(run).settings["temperature"] == EntityRecognizer(run).network.temperature != 1.0
    assert read_run(run).scores["valid"]["f"] < 1  # of a model of all sentences, it is 1
    folds = np.argsort(np.random.default_rng([2, FOLDS]).permutation(60)) % FOLDS
    together = folds[:, None] == folds
    ours = np.array([row["fold"] for row in rows])
    assert np.array_equal(ours[:, None] == ours, together)
    total = sum(row["expected"] for row in rows)
    assert 0.5 < total / sum(len(row["gold"]) for row in rows) < 2
    assert all(len(row["likely"]) == len(row["gold"]) and row["unseen"][0] < row["unseen"][1] for row in rows)
    for row in rows:
        found = {tuple(span[:3]): span[3] for span in row["found"]}
        for span, p in zip(row["gold"], row["likely"], strict=True):
            assert p == pytest.approx(found.get(tuple(span), p), abs=1e-5)


def test_an_estimate_corrects_the_number_of_entities_as_the_folds_say(run, corpus):
    recognizer, rows = EntityRecognizer(run), rows_of(run)
    texts = [item.text for item in corpus.test]
    _, plain = recognizer._expected(texts, 64, lambda count: None)
    real, expected = sum(len(row["gold"]) for row in rows), sum(row["expected"] for row in rows)
    estimate = recognizer.estimate(texts).all
    assert estimate.true == pytest.approx(max(estimate.right, plain.sum() * (real + 1) / (expected + 1)), rel=1e-3)
    assert EntityRecognizer(run, coverage=0.8).decoder.min_probability in [p for row in rows for p in row["likely"]]


@pytest.mark.parametrize("min_probability", [None, 0.2])
@pytest.mark.parametrize("is_partial", [False, True])
def test_calibration_counts_the_predictions_that_can_be_scored(min_probability, is_partial, run, corpus):
    items = corpus.valid
    if is_partial:  # of each sentence, only the first entity is known
        items = [replace(s, spans=s.spans[:1], unknown=[span[:2] for span in s.spans[1:]]) for s in items]
    folds = FoldsTagger([EntityRecognizer(run, min_probability)] * len(items))
    folds.calibrate(items)
    rows = zip(items, folds.predictions(items), strict=True)
    scored = [(s, span) for s, spans in rows for span in spans if s.scored([(*span.key, span.probability)])]
    right = np.mean([span.key in s.spans for s, span in scored])
    assert np.mean([span.probability for _, span in scored]) == pytest.approx(right, abs=0.03)
    facts = [facts for _, facts in folds.predictions_and_facts(items)]
    assert ["expected" in row for row in facts] == [not s.unknown for s in items]


def test_a_run_resumes_with_its_folds(run, corpus, tmp_path, monkeypatch):
    def fail(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FoldsTagger, "calibrate", fail)
        with pytest.raises(KeyboardInterrupt):
            train_tagger(SETTINGS, corpus.train[:60], out=tmp_path / "run")
    resume_tagger(tmp_path / "run", corpus.train[:60])
    for name in ("predictions.jsonl", "scores.json"):
        assert (tmp_path / "run" / name).read_bytes() == (run / name).read_bytes()


@pytest.mark.parametrize(
    "other",
    [
        {"encoder": "cnn", "epochs": 1, "width": 8, "depth": 1},
        {"solver": "adagrad", "epochs": 1},
        {"epochs": 1},
        {"task": "cws"},
    ],
)
def test_other_runs_hold_out_a_tenth(other, corpus, tmp_path):
    settings = Settings(**{"task": "ner", "encoder": "linear", "augment": 0, **other})
    train = load_mini().train if settings.task == "cws" else corpus.train
    train_tagger(settings, train[:40], out=tmp_path / "run")
    assert len(rows_of(tmp_path / "run")) == 4


def test_copies_are_made_where_lbfgs_learns_them():
    types = {2: ("A", "B"), 8: tuple("ABCDEFGH")}

    def solver_and_copies(items, number, **settings):
        facts = DataFacts(types=types[number], units="characters", items=items, windows=items)
        config = resolve(Settings(task="ner", **settings), facts)
        return config.optimizer.solver, any(getattr(stage, "augment", 0) for stage in config.stages)

    assert solver_and_copies(300, 8, encoder="linear") == ("lbfgs", True)
    assert solver_and_copies(1000, 8, encoder="linear") == ("lbfgs", False)
    assert solver_and_copies(1000, 2, encoder="linear") == ("lbfgs", True)
    assert solver_and_copies(1000, 8)[1]


def test_the_line_after_training_says_how_many_sentences_a_better_score_needs(corpus, tmp_path, capsys):
    train = [sentence for sentence in corpus.train[:60] if sentence.text]
    (tmp_path / "train.jsonl").write_text("".join(f"{sentence_line(s)}\n" for s in train), encoding="utf-8")
    arguments = ["train", "--task", "ner", "--encoder", "linear", "--augment", "0", "--seed", "2", "--quiet"]
    assert main([*arguments, "--train", str(tmp_path / "train.jsonl"), "--out", str(tmp_path / "run")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    rows = rows_of(tmp_path / "run")
    low, high = interval(bootstrap_predictions(rows))
    assert f"expected on texts like these: F1 {low:.2f} to {high:.2f}; about 0." in shown
    assert "more (" in shown and "`kcrf suggest` names them" in shown
    tagger, scores = train_tagger(SETTINGS, train, out=tmp_path / "same")
    assert tagger.curve.sizes == [15, 45] and tagger.curve.count == 60
    assert tagger.curve.scores[:, 1].mean() == pytest.approx(scores["valid"]["f"], abs=0.1)
    assert tagger.counts.sum(axis=0)[1] == sum(len(row["gold"]) for row in rows)


def test_nothing_is_expected_where_all_samples_of_the_held_out_sentences_score_the_same(corpus, tmp_path, capsys):
    few = [sentence for sentence in corpus.train if sentence.spans][:5]
    (tmp_path / "few.jsonl").write_text("".join(f"{sentence_line(s)}\n" for s in few), encoding="utf-8")
    arguments = ["train", "--task", "ner", "--encoder", "linear", "--augment", "0", "--quiet"]
    assert main([*arguments, "--train", str(tmp_path / "few.jsonl"), "--out", str(tmp_path / "run")]) == 0
    rows = rows_of(tmp_path / "run")
    low, high = interval(bootstrap_predictions(rows))
    assert low == high and "expected on texts" not in capsys.readouterr().out

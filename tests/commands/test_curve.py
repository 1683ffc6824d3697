"""Tests of kcrf.commands.curve and kcrf.training.curve."""

import sys

import numpy as np
import pytest

from kcrf.commands.curve import in_words
from kcrf.commands.main import main
from kcrf.corpora import load_mini
from kcrf.metrics.learning_curves import LearningCurve
from kcrf.training import Settings, learning_curve
from kcrf.training.curve import score_of

BACKENDS = ["torch"]


def curve_of(scores, sizes=(40, 80, 160), count=200):
    return LearningCurve("f", count, list(sizes), np.array(scores))


def test_two_sentences_say_what_is_and_what_is_needed():
    curve = curve_of([[1 / 2, 2 / 3, 4 / 5]] * 3)  # the odds of an error halve with each doubling
    assert curve.needs().startswith("about 0.85 with ")
    assert in_words(curve, 0.9) == (
        "F1 0.833 with 200 sentences; about 0.9 with 160 more (160 to 160). With twice as many, 0.909 (0.909 to 0.909)."
    )
    assert "F1 0.833 with 200 sentences; 0.5 is reached. With twice" in in_words(curve, 0.5)
    flat = curve_of([[0.7, 0.7, 0.7]] * 3)
    assert "0.75 is out of reach of sentences like these" in in_words(flat, 0.75)
    noisy = curve_of([[0.6, 0.6, 0.6], [0.65, 0.55, 0.6], [0.55, 0.65, 0.6]])
    assert "or more)" in in_words(noisy, 0.8)


def test_a_curve_is_made_of_models_of_growing_parts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = load_mini().train[:60]
    (tmp_path / "train.txt").write_text("\n".join(" ".join(row) for row in words) + "\n", encoding="utf-8")
    arguments = ["curve", "--train", "train.txt", "--seed", "4"]
    settings = Settings(encoder="linear", augment=0, seed=4)
    curve = learning_curve(settings, words)
    assert curve.sizes == [10, 20, 40] and curve.scores.shape == (3, 3) and curve.count == 60
    order = np.random.default_rng(4).permutation(60)
    order = [*order[20:], *order[:20]]  # the second draw leaves another third
    part, test = ([words[i] for i in sorted(rows)] for rows in (order[:20], order[20:]))
    assert curve.scores[1, 1] == score_of(settings, part, test)[1]
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "matplotlib.figure", None)
        assert main([*arguments, "--out", "curve.svg"]) == 2
    shown, errors = capsys.readouterr()
    assert in_words(curve, None) in " ".join(shown.split()) and "pip install 'kcrf[reports]'" in errors
    pytest.importorskip("matplotlib")
    assert main([*arguments, "--goal", "0.7", "--out", "curve.svg"]) == 0
    shown = capsys.readouterr().out
    assert in_words(curve, 0.7) in " ".join(shown.split())
    assert (tmp_path / "curve.svg").read_text().startswith("<?xml")
    assert main([*arguments, "--out", "curve.svg"]) == 2 and "--overwrite" in capsys.readouterr().err


def test_too_few_sentences_and_models_that_find_nothing_are_refused():
    words = load_mini().train
    with pytest.raises(ValueError, match="needs at least 30 sentences. Received: 20"):
        learning_curve(Settings(encoder="linear", augment=0), words[:20])
    corpus = load_mini("ner").train[:60]
    rare = [corpus[0], *([type(corpus[0])("今天天气很好", [])] * 59)]
    with pytest.raises(ValueError, match="models that find something"):
        learning_curve(Settings(task="ner", encoder="linear", augment=0), rare)


@pytest.mark.parametrize("goal", ["0", "1", "1.5"])
def test_a_goal_is_between_0_and_1(goal, capsys):
    assert main(["curve", "--train", "no.txt", "--goal", goal]) == 2
    assert "--goal must be above 0 and below 1" in capsys.readouterr().err

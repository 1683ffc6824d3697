"""Tests of kcrf.commands.estimate: what it prints is the estimate of the tagger, for every task and kind of model."""

import json

import pytest

from kcrf.commands.main import main
from kcrf.taggers import load_tagger

BACKENDS = ["torch"]
TRAIN = {
    "ner": ['{"text": "李雷住在上海", "entities": [{"start": 0, "end": 2, "label": "PER"}]}'] * 6,
    "cws": ["今天 天气 好", "他们 来 了"] * 4,
    "pos": ["Kim\tN", "slept\tV", "", "Ada\tN", "saw\tV", "Kim\tN", ""] * 4,
    "classify": ["好\tgood", "坏\tbad", "很好\tgood", "很坏\tbad"] * 4,
}
TEXTS = {
    "ner": ["李雷在上海。", "没有人"],
    "cws": ["今天天气真好", ""],
    "pos": ["Kim slept .", "No"],
    "classify": ["很好", "坏"],
}


def trained(folder, task):
    (folder / "train.txt").write_text("\n".join(TRAIN[task]) + "\n", encoding="utf-8")
    encoder = [] if task == "classify" else ["--encoder", "linear"]
    arguments = ["train", "--task", task, *encoder, "--epochs", "1", "--train", str(folder / "train.txt"), "-q"]
    assert main([*arguments, "--out", str(folder / "run")]) == 0
    (folder / "texts.txt").write_text("\n".join(TEXTS[task]) + "\n", encoding="utf-8")


@pytest.mark.parametrize("task", TRAIN)
def test_the_estimate_of_a_file(task, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    trained(tmp_path, task)
    capsys.readouterr()
    assert main(["estimate", "--model", "run", "texts.txt", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    texts = [text.split() if task == "pos" else text for text in TEXTS[task] if text]
    tagger = load_tagger("run")
    assert printed == tagger.estimate(texts).as_dict() and printed["texts"] == len(texts)
    assert main(["estimate", "--model", "run", "texts.txt"]) == 0
    shown = capsys.readouterr().out
    assert all(label in shown for label in tagger.labels) and f"{printed['f'][0]:.3f} ±" in shown
    if task == "ner":
        assert main(["export", "run", "--out", "run.npz"]) == 0
        assert main(["estimate", "--model", "run.npz", "texts.txt"]) == 0
        assert "calibration of these probabilities is not known" in capsys.readouterr().err
    (tmp_path / "empty.txt").write_text("\n \n")
    assert main(["estimate", "--model", "run", "empty.txt"]) == 2
    assert "empty.txt: needs at least one text. Received: none" in capsys.readouterr().err
    (tmp_path / "json.txt").write_text('{"text": "a"}\n')
    if task != "pos":
        assert main(["estimate", "--model", "run", "json.txt"]) == 2
        assert "json.txt:1: needs a text" in capsys.readouterr().err
    assert main(["estimate", "--model", "nowhere", "texts.txt"]) == 2

"""kcrf score: files that were exchanged, and its tasks."""

import json

import pytest

from kcrf.commands import main
from kcrf.tasks import TASKS

BACKENDS = ["torch"]
ENTITY = {"start": 0, "end": 2, "label": "PER"}
FILES = {
    "ner": (
        {"text": "李雷在上海", "entities": [ENTITY]},
        {"text": "李雷在上海", "entities": [{**ENTITY, "text": "李雷", "confidence": 0.9}]},
    ),
    "classify": (
        {"text": "good", "label": "x"},
        {"text": "good", "label": "y", "probabilities": {"x": 0.4, "y": 0.6}},
    ),
}


@pytest.mark.parametrize("task", FILES)
def test_gold_and_predictions_that_were_exchanged_are_noticed(task, tmp_path, capsys):
    gold, pred = tmp_path / "gold.jsonl", tmp_path / "pred.jsonl"
    for path, row in zip((gold, pred), FILES[task], strict=True):
        path.write_text(json.dumps(row, ensure_ascii=False) + "\n", encoding="utf-8")
    score = ["score", "--task", task, "--json"]
    assert main([*score, "--gold", str(gold), "--pred", str(pred)]) == 0
    assert main([*score, "--gold", str(pred), "--pred", str(pred)]) == 0  # two models are compared
    assert main([*score, "--gold", str(pred), "--pred", str(gold)]) == 2
    message = "--gold needs the correct words, entities or labels. Received: predictions of `kcrf`; exchange --gold"
    assert f"{pred}: {message} and --pred" in capsys.readouterr().err


def test_every_task_can_be_scored(capsys):
    with pytest.raises(SystemExit):
        main(["score", "--help"])
    assert f"--task {{{','.join(TASKS)}}}" in capsys.readouterr().out

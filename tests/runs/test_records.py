"""kcrf.runs.records: The log of a run folder: the transitions of the CRF."""

import numpy as np
import pytest

from kcrf.runs.formats import read_predictions, read_scores
from kcrf.runs.records import last_advice
from kcrf.tags import bmes

BACKENDS = ["torch"]

ALLOWED = bmes().allowed_transitions
ROW = {"epoch": 3, "transition_size": 1.0, "emission_gap": 5.0, "lr_multiplier": 40, "suggested_lr_multiplier": 50}


@pytest.mark.parametrize("constrained", [True, False])
def test_constraints_are_no_advice_where_they_are_on(constrained):
    matrix = np.where(ALLOWED | (not constrained), 0.5, -1e9).tolist()
    log = [{**ROW, "illegal_above_legal": 0 if constrained else 6}]
    fault = "after epoch 3: transitions are 5 times smaller than the emission gap"
    if not constrained:
        fault += " and 6 of 8 illegal ones score above a legal one"
    end = " if the scores still improve" if constrained else ", or forbid illegal transitions (`constraints`)"
    expected = f"{fault}, at a fair lr_multiplier: train for longer{end}"
    assert last_advice(log, ALLOWED, [(3, matrix)]) == expected


@pytest.mark.parametrize(
    ("scores", "end"),
    [
        ([0.5], ": train for longer if the scores still improve"),
        ([0.5, 0.7, 0.8], ", and the scores still improve: train for longer"),
        ([0.5, 0.7, 0.6], "; the scores no longer improve"),
        ([0.5] * 17 + [0.8, 0.7, 0.7], "; the scores no longer improve"),
        ([0.5] * 18 + [0.8, 0.7], ", and the scores still improve: train for longer"),
    ],
)
def test_longer_training_is_advised_only_while_the_scores_improve(scores, end):
    log = [{**ROW, "epoch": epoch, "valid_f": score} for epoch, score in enumerate(scores, 1)]
    fault = f"after epoch {len(scores)}: transitions are 5 times smaller than the emission gap, at a fair lr_multiplier"
    assert last_advice(log, None, []) == fault + end


def test_a_run_that_recognizes_nothing_is_not_called_learned():
    log = [{**ROW, "epoch": epoch, "emission_gap": 1.0, "valid_f": 0.0} for epoch in (1, 2)]
    assert "while the validation score is 0: train for longer" in last_advice(log, None, [])
    assert "look learned: nothing to do" in last_advice([*log, {**log[0], "epoch": 3, "valid_f": 0.4}], None, [])


def test_the_rate_is_the_highest_one_and_not_that_of_the_last_epoch():
    rates = {"learning_rate": 1e-9, "highest_learning_rate": 1e-3, "lr_multiplier": 100, "suggested_lr_multiplier": 10}
    log = [{**ROW, **rates, "argmax_accuracy": 0.5, "viterbi_accuracy": 0.4}]
    assert "learns too fast at 0.1 (learning rate 0.001 x lr_multiplier 100), lower" in last_advice(log, None, [])


@pytest.mark.parametrize("read", [read_predictions, read_scores])
@pytest.mark.parametrize(
    "content", ["[" * 100_000, '{"text": ' * 3000, "5", '{"gold": 1e999}', f'{{"text": {"9" * 5000}}}']
)
def test_a_damaged_file_is_an_error_that_names_it(tmp_path, read, content):
    (tmp_path / "file.json").write_text(content)
    with pytest.raises(ValueError, match=f"{tmp_path}/file.json:1: needs "):
        read(tmp_path / "file.json")


@pytest.mark.parametrize(
    "facts",
    ['"expected": "many"', '"expected": [1, 2]', '"unseen": [1]', '"unseen": {}', '"likely": [0.5, 0.5]', '"fold": []'],
)
def test_facts_of_a_sentence_are_as_many_numbers_as_it_needs(tmp_path, facts):
    begin = '{"text": "Kim", "gold": [[0, 3, "PER"]], "found": []'
    (tmp_path / "file.json").write_text(f"{begin}}}\n{begin}, {facts}}}")
    with pytest.raises(ValueError, match="json:2: needs a number for expected and fold, two for unseen, 1 for likely"):
        read_predictions(tmp_path / "file.json")
    (tmp_path / "file.json").write_text(f'{begin}, "unseen": [1, 2]}}\n{begin}, "expected": 1.5, "likely": [0.5]}}')
    first, second = read_predictions(tmp_path / "file.json")
    assert first["unseen"] == [1, 2] and first.keys().isdisjoint(("expected", "likely"))
    assert second["expected"] == 1.5 and second["likely"] == [0.5] and "unseen" not in second

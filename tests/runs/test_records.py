"""What a run folder's log says about the transitions of the CRF."""

import numpy as np
import pytest

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
    end = " if the scores still improve" if constrained else ", or forbid what is illegal (`constraints`)"
    expected = f"{fault}, at a fair lr_multiplier: train for longer{end}"
    assert last_advice(log, ALLOWED, [(3, matrix)]) == expected


def test_the_rate_is_the_highest_one_and_not_that_of_the_last_epoch():
    rates = {"learning_rate": 1e-9, "highest_learning_rate": 1e-3, "lr_multiplier": 100, "suggested_lr_multiplier": 10}
    log = [{**ROW, **rates, "argmax_accuracy": 0.5, "viterbi_accuracy": 0.4}]
    assert "a rate of 0.1 (learning rate 0.001 x lr_multiplier 100), lower" in last_advice(log, None, [])

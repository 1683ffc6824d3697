"""The four rows of the source on one layer of a BERT.

Before these runs, the corpus was reduced from 400 sentences of all lengths to 160 short ones, to save processor time.
One run of each row of the larger grid was seen: CRF-2 .834, softmax .798, CRF-1 .793, CRF-3 .742.

The title named the learning rates, and CRF-3, only after the results. The rows with illegal paths masked were written
long after the runs; the source did not mask, so nothing is claimed of them.
"""

from experiments.claim import Claim, Grid
from experiments.claims.c01_learning_rate_of_transitions import CELLS as MULTIPLIERS
from experiments.claims.c01_learning_rate_of_transitions import HIGH
from experiments.verdicts import Comparison, measure

CELL = "PKU, 1 layer"
ARMS = {
    "CRF-1": {"learning_rate": 1e-3, "crf_lr_multiplier": 1.0},
    "CRF-2": {"learning_rate": 1e-3, "crf_lr_multiplier": 10.0},
    "CRF-3": {"learning_rate": 1e-2, "crf_lr_multiplier": 1.0},
    "softmax": {"learning_rate": 1e-3, "head": "softmax"},
}


def first_epoch(one, other):
    """The scores on the validation set after the first epoch."""
    return one["valid"][0], other["valid"][0]


CLAIM = Claim(
    title="On one layer of BERT, a CRF with a 10 times higher learning rate (CRF-2: 1e-3, transitions 1e-2) is best, "
    "then the plain CRF (CRF-1: 1e-3), then softmax; a rate of 1e-2 for all weights (CRF-3) is worse",
    source="PKU F1: CRF-1 .925, CRF-2 .930, CRF-3 .747, softmax .907; after epoch 1 .914, .929, .673, .899 (Su 2020)",
    literature="no replication known",
    grids=(Grid({CELL: MULTIPLIERS[HIGH]}, ARMS),),
    comparisons=(
        Comparison("CRF-2", "CRF-1", "higher", 0.005, (CELL,), "F1"),
        Comparison("CRF-1", "softmax", "higher", 0.005, (CELL,), "F1"),
        Comparison("CRF-3", "CRF-1", "lower", 0.005, (CELL,), "F1"),
        Comparison("CRF-2", "softmax", "higher", 0.005, (CELL,), "F1"),
        Comparison("CRF-2", "CRF-1", "higher", 0.005, (CELL,), "validation F1 after epoch 1", first_epoch),
        *(
            Comparison(first, second, "", 0.005, (CELL,), "F1, illegal paths masked", measure("constrained_score"))
            for first, second in (("CRF-2", "softmax"), ("CRF-2", "CRF-1"), ("CRF-1", "softmax"))
        ),
    ),
)

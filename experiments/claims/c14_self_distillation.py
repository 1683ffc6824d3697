"""A teacher with the same settings.

Before these runs, the grid was reduced from 64 runs to save processor time: word segmentation with 160 short sentences,
whose runs with labels are those of c03b.
"""

from experiments.claim import Claim, Grid
from experiments.claims.c03b_where_a_crf_helps import CELLS as HEADS
from experiments.verdicts import Comparison

CELL = "PKU, 1 layer, 160 sentences"
TAUGHT = {"labels": {}, "teacher": {"teacher": True}}
ARMS = {
    **{name: {"constraints": True, **settings} for name, settings in TAUGHT.items()},
    **{f"softmax, {name}": {"head": "softmax", **settings} for name, settings in TAUGHT.items()},
}

CLAIM = Claim(
    title="Self-distillation gains",
    source="often gains, no figure (xv44586 2020)",
    literature="Furlanello 2018 agrees on images",
    grids=(Grid({CELL: HEADS[CELL]}, ARMS),),
    comparisons=(
        Comparison("teacher", "labels", "higher", 0.01, (CELL,), "F1, sequence level"),
        Comparison("softmax, teacher", "softmax, labels", "higher", 0.01, (CELL,), "F1, token level"),
    ),
)

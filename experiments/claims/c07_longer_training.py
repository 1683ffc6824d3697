"""More steps on little data.

Before these runs, the grid was reduced from 96 runs to save processor time: one tagging task with one BERT layer. The
best epoch is kept, as `kcrf train` does.
"""

from experiments.claim import Claim, Grid
from experiments.claims.c03b_where_a_crf_helps import CELLS as HEADS
from experiments.verdicts import Comparison

CELL = "PKU, 1 layer, 160 sentences"
ARMS = {f"x{n}": {"constraints": True, "epochs": 4 * n} for n in (1, 2, 4, 8)}

CLAIM = Claim(
    title="Training for more steps helps on few samples",
    source="helps, no figure; with early stopping of little use (Stable BERT 2020)",
    literature="Mosbach 2021: 20 epochs instead of 3",
    grids=(Grid({CELL: HEADS[CELL]}, ARMS),),
    comparisons=tuple(Comparison(arm, "x1", "higher", 0.01, (CELL,), "F1") for arm in ("x4", "x2", "x8")),
)

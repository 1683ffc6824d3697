"""`suggest_lr_multiplier` against the best multiplier of the grid, in the runs of c01."""

from experiments.claim import Claim
from experiments.claims.c01_learning_rate_of_transitions import ARMS, BEST, CELLS
from experiments.verdicts import Comparison

FIXED = tuple(arm for arm in ARMS if arm != "auto")
ORDER = (BEST, *(cell for cell in CELLS if cell != BEST))

CLAIM = Claim(
    title="`suggest_lr_multiplier` is within .1 points of F1 of the best multiplier of the grid",
    source="ours",
    literature="",
    grids=(),
    comparisons=tuple(Comparison("auto", FIXED, "same", 0.001, (cell,), "F1") for cell in ORDER),
    runs_of="c01",
    seeds=5,
)

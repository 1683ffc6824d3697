"""More steps on little data."""

from experiments.claim import Claim, Grid
from experiments.claims.c04_bias_correction import ENTITIES, TASKS
from experiments.verdicts import Comparison

CELLS = {"People's Daily": ENTITIES["People's Daily"], "RTE": TASKS["RTE"], "CoLA": TASKS["CoLA"]}
ARMS = {f"x{n}": {"epochs": 3 * n} for n in (1, 2, 4, 8)}

CLAIM = Claim(
    title="Training for more steps helps on few samples",
    source="helps, no figure; with early stopping of little use (002)",
    literature="Mosbach 2021: 20 epochs instead of 3",
    grids=tuple(Grid({name: cell}, ARMS) for name, cell in CELLS.items()),
    comparisons=tuple(Comparison(arm, "x1", "higher", 0.01, (cell,)) for cell in CELLS for arm in ("x2", "x4", "x8")),
    axis="steps, in multiples of 3 epochs",
)

"""The size of the batches of fine-tuning, over the same epochs: larger batches are fewer steps.

Declared before any of its runs but those with 16 sentences a batch, which are those of o5 at 2e-4. With 64 sentences, a
run has 30 steps, so one arm has twice the rate: the square root of 4, as is usual for Adam.
"""

from experiments.claim import Claim, Grid
from experiments.claims.o5_learning_rate import CELLS as RATES
from experiments.verdicts import Comparison

CELLS = {name: {**RATES[name], "learning_rate": 2e-4} for name in RATES if "4 layers, 160 sentences" in name}
ARMS = {
    "16": {},
    "64": {"batch_size": 64},
    "64, twice the rate": {"batch_size": 64, "learning_rate": 4e-4},
    "4": {"batch_size": 4},
}

CLAIM = Claim(
    title="A batch as large as the GPU holds is best",
    source="a few dozen or hundred, as many as the GPU holds; no figure (Chile 2020)",
    literature="Devlin 2019 chooses between 16 and 32",
    grids=(Grid(CELLS, ARMS),),
    comparisons=tuple(
        Comparison(arm, "16", claimed, 0.01, (cell,), "F1")
        for cell in CELLS
        for arm, claimed in (("64", "higher"), ("64, twice the rate", ""), ("4", "lower"))
    ),
    seeds=3,
)

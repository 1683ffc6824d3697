"""More steps on little data.

Before these runs, the grid was reduced from 96 runs to save processor time: one tagging task with one BERT layer. The
best epoch is kept, as `kcrf train` does.
Added after the first results, before they were measured: entities, words and pairs at the default learning rate of
5e-5, with 5 seeds. They decide how many epochs `kcrf train --bert` has by default.
"""

from experiments.claim import Claim, Grid
from experiments.claims.c03b_where_a_crf_helps import CELLS as HEADS
from experiments.claims.c04_bias_correction import TASKS
from experiments.verdicts import Comparison

CELL = "PKU, 1 layer, 160 sentences"
ARMS = {f"x{n}": {"constraints": True, "epochs": 4 * n} for n in (1, 2, 4, 8)}
DEFAULTS = {"bert": "chinese", "learning_rate": 5e-5, "batch_size": 16}
CELLS = {
    "People's Daily, 300 sentences, 5e-5": {**DEFAULTS, "corpus": "people_daily", "sentences": 300},
    "STS-B, 256 pairs, 5e-5": {**TASKS["STS-B"], "pool": "first"},
    "PKU, 160 sentences, 5e-5": {**DEFAULTS, "corpus": "pfr199801", "lengths": (20, 40), "sentences": 160},
}
EPOCHS = {f"{n} epochs": {"epochs": n} for n in (5, 20)}
SEEDS = 5

CLAIM = Claim(
    title="Training for more steps helps on few samples",
    source="helps, no figure; with early stopping of little use (Stable BERT 2020)",
    literature="Mosbach 2021: 20 epochs instead of 3",
    grids=(Grid({CELL: HEADS[CELL]}, ARMS), *(Grid({cell: CELLS[cell]}, EPOCHS, SEEDS) for cell in CELLS)),
    comparisons=(
        *(Comparison(arm, "x1", "higher", 0.01, (CELL,), "F1") for arm in ("x4", "x2", "x8")),
        *(Comparison("20 epochs", "5 epochs", "higher", 0.01, (cell,), seeds=SEEDS) for cell in CELLS),
    ),
)

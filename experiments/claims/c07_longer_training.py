"""More steps on little data.

Before these runs, the grid was reduced from 96 runs to save processor time: one tagging task with one BERT layer. The
best epoch is kept, as `kcrf train` does.
Added after the first results, before they were measured: entities and words at the default learning rate of 5e-5, with
5 seeds. They decide how many epochs `kcrf train --bert` has by default. The cells of 12 layers, with the default
patience of 5 epochs, were declared before any of their runs.
"""

from experiments.claim import Claim, Grid
from experiments.claims.c03b_where_a_crf_helps import CELLS as HEADS
from experiments.claims.c03b_where_a_crf_helps import PEOPLE, PKU
from experiments.verdicts import Comparison

CELL = "PKU, 1 layer, 160 sentences"
ARMS = {f"x{n}": {"constraints": True, "epochs": 4 * n} for n in (1, 2, 4, 8)}
DEFAULTS = {"bert": "chinese", "learning_rate": 5e-5, "batch_size": 16}
CELLS = {
    "People's Daily, 300 sentences, 5e-5": {**DEFAULTS, "corpus": "people_daily", "sentences": 300},
    "PKU, 160 sentences, 5e-5": {**DEFAULTS, "corpus": "pfr199801", "lengths": (20, 40), "sentences": 160},
}
EPOCHS = {f"{n} epochs": {"epochs": n} for n in (5, 20)}
SEEDS = 5
DEEP_CELLS = {
    "People's Daily, 12 layers, 300 sentences": {**PEOPLE, "sentences": 300, "learning_rate": 5e-5},
    "PKU, 12 layers, 160 sentences": {**PKU, "sentences": 160, "learning_rate": 5e-5},
}
DEEP_EPOCHS = {f"{n} epochs": {"epochs": n, "patience": 5} for n in (5, 20, 40)}
DEEP_SEEDS = 4

CLAIM = Claim(
    title="Training for more steps helps on few samples",
    source="helps, no figure; with early stopping of little use (Stable BERT 2020)",
    literature="Mosbach 2021: 20 epochs instead of 3",
    grids=(
        Grid({CELL: HEADS[CELL]}, ARMS),
        *(Grid({cell: CELLS[cell]}, EPOCHS, SEEDS) for cell in CELLS),
        *(Grid({cell: DEEP_CELLS[cell]}, DEEP_EPOCHS, DEEP_SEEDS) for cell in DEEP_CELLS),
    ),
    comparisons=(
        *(Comparison(arm, "x1", "higher", 0.01, (CELL,), "F1") for arm in ("x4", "x2", "x8")),
        *(Comparison("20 epochs", "5 epochs", "higher", 0.01, (cell,), "F1", seeds=SEEDS) for cell in CELLS),
        *(
            Comparison(first, second, "higher", 0.01, (cell,), "F1", seeds=DEEP_SEEDS)
            for cell in DEEP_CELLS
            for first, second in (("20 epochs", "5 epochs"), ("40 epochs", "20 epochs"))
        ),
    ),
)

"""A linear model, a network with n-gram scores (wide and deep) and a network alone over the size of the data.

Before these runs, the grid was reduced from 180 runs to save processor time: short sentences, fewer sizes, a network of
width 64. Without the average of the network and a linear model, which is now the default.

All runs were measured again on 2026-11-27 and 28, because L-BFGS replaced AdaGrad as the solver of linear models.
"""

from experiments.claim import Claim, Grid, crossed
from experiments.verdicts import Comparison

COMMON = {"lengths": (20, 40), "epochs": 10, "batch_size": 16}
CORPORA = {"PKU": {**COMMON, "corpus": "pfr199801"}, "People's Daily": {**COMMON, "corpus": "people_daily"}}
SIZES = {f"{size} sentences": {"sentences": size} for size in (100, 400)}
NETWORK = {"width": 64, "depth": 1, "dropout": 0.1}
CELLS = crossed(CORPORA, SIZES)
ARMS = {
    "linear": {"encoder": "linear"},
    "deep": {**NETWORK, "ngrams": False},
    "wide and deep": {**NETWORK, "linear_weight": 0.0},
}

CLAIM = Claim(
    title="On a few hundred sentences a linear model is better than a network; wide and deep is as good as either",
    source="ours",
    literature="",
    grids=tuple(Grid({cell: settings}, ARMS) for cell, settings in CELLS.items()),
    comparisons=tuple(
        comparison
        for cell in CELLS
        for comparison in (
            Comparison("linear", "deep", "higher", 0.01, (cell,), "F1"),
            Comparison("wide and deep", ("deep", "linear"), "not lower", 0.01, (cell,), "F1"),
        )
    ),
)

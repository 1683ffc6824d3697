"""A linear model, a network with n-gram scores (wide and deep) and a network alone over the size of the data."""

from experiments.claim import Claim, Grid, crossed
from experiments.verdicts import Comparison

CORPORA = {"PKU": {"corpus": "pfr199801"}, "People's Daily": {"corpus": "people_daily"}, "Weibo": {"corpus": "weibo"}}
SIZES = {f"{size or 'all'} sentences": {"sentences": size} for size in (100, 300, 1000, None)}
CELLS = crossed(CORPORA, SIZES)
ARMS = {"wide and deep": {}, "deep": {"ngrams": False}, "linear": {"encoder": "linear"}}
SMALL = {cell: settings for cell, settings in CELLS.items() if "all" not in cell}

CLAIM = Claim(
    title="On a few hundred sentences a linear model is better than a network; wide and deep is as good as either",
    source="ours",
    literature="",
    grids=(Grid(SMALL, ARMS), Grid(CELLS, ARMS, seeds=5)),
    comparisons=tuple(
        comparison
        for cell in CELLS
        for comparison in (
            Comparison("linear", "deep", "higher", 0.01, (cell,), "F1", seeds=5),
            Comparison("wide and deep", ("deep", "linear"), "same", 0.01, (cell,), "F1", seeds=5),
        )
    ),
    seeds=5,
    axis="model",
)

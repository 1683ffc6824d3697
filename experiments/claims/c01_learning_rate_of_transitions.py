"""What the learning rate of the transitions does: illegal transitions, their size, F1."""

from experiments.claim import Claim, Grid, crossed
from experiments.verdicts import Comparison, measure

COMMON = {"bert": "chinese", "sentences": 300, "head_lr_multiplier": 1.0, "batch_size": 4, "constraints": False}
CORPORA = {"PKU": {"corpus": "pfr199801", **COMMON}, "People's Daily": {"corpus": "people_daily", **COMMON}}
LAYERS = {f"{n} layer{'s' * (n > 1)}": {"bert_layers": n, "epochs": 4} for n in (1, 2, 4)}
RATES = {rate: {"learning_rate": float(rate)} for rate in ("1e-5", "1e-4", "1e-3")}
ARMS = {f"x{k}": {"crf_lr_multiplier": float(k)} for k in (1, 3, 10, 33, 100, 333, 1000)}
ARMS["auto"] = {"crf_lr_multiplier": "auto"}
STARTS = {f"{arm}, zeros": {**ARMS[arm], "start": "zeros"} for arm in ("x1", "x100", "x1000")}
CELLS = crossed(CORPORA, LAYERS, RATES)
FIRST, BEST = "PKU, 1 layer, 1e-5", "PKU, 4 layers, 1e-3"
ILLEGAL = measure("illegal_above_legal")
WHAT = "share of illegal transitions above a legal one"


def only(cell):
    """The settings of one cell."""
    return {cell: CELLS[cell]}


CLAIM = Claim(
    title="At a learning rate of 1e-5 the transitions hardly learn; at 100 to 1,000 times the rate they become legal",
    source="BERT base on PKU: illegal transitions above legal ones at x1, none at x1000; F1 the same (000, 001)",
    literature="bert4keras#188 the same; AdaSeq's resume.yaml uses x10,000",
    grids=(
        Grid(only(FIRST), {arm: ARMS[arm] for arm in ("x1", "x100", "x1000")}),
        Grid(only(FIRST), {"x1, zeros": STARTS["x1, zeros"]}),
        Grid(only(BEST), {arm: ARMS[arm] for arm in ("x1", "x10", "auto")}),
        Grid(CELLS, ARMS, seeds=5),
        Grid({cell: CELLS[cell] for cell in (FIRST, BEST)}, STARTS),
    ),
    comparisons=(
        Comparison("x1000", "x1", "lower", 0.05, (FIRST,), WHAT, ILLEGAL),
        Comparison("x100", "x1", "lower", 0.05, (FIRST,), WHAT, ILLEGAL),
        Comparison("x1, zeros", "x1", "lower", 0.05, (FIRST,), WHAT, ILLEGAL),
        Comparison("x10", "x1", "higher", 0.002, (BEST,), "F1"),
        Comparison("x1000", "x1", "same", 0.002, tuple(crossed(CORPORA, LAYERS, {"1e-5": {}})), "F1", seeds=5),
    ),
    axis="learning-rate multiplier of the transitions",
    shown="illegal_above_legal",
)

"""What the learning rate of the transitions does: illegal transitions, their size, F1.

Before these runs, the grid was reduced from 786 runs of 300 sentences to save processor time: one BERT layer, short
sentences and few steps. Pilot runs were seen: at 1e-5 and after about 500 steps, 75 % of the illegal transitions scored
above a legal one with x1 and x100, none with x1000; after 60 steps, 75 % with each of them. So few steps at 1e-5 teach
nothing, thus the low learning rate is now 1e-4.

Three cells were added after the first results, with comparisons that were written down before they were measured: 480
steps at 1e-5, entities of the People's Daily with seven tags, and four layers.
"""

from experiments.claim import Claim, Grid
from experiments.verdicts import Comparison, measure

COMMON = {"corpus": "pfr199801", "lengths": (20, 40), "bert": "chinese", "bert_layers": 1, "head_lr_multiplier": 1.0,
          "constraints": False, "masked": True}  # fmt: skip
ALL_LAYERS = {name: value for name, value in COMMON.items() if name != "bert_layers"}
CELLS = {
    "PKU, 1e-4": {**COMMON, "sentences": 80, "learning_rate": 1e-4, "batch_size": 4, "epochs": 3},
    "PKU, 1e-3": {**COMMON, "sentences": 160, "learning_rate": 1e-3, "batch_size": 16, "epochs": 4},
    "People's Daily, 1e-3":
        {**COMMON, "corpus": "people_daily", "sentences": 320, "learning_rate": 1e-3, "batch_size": 8, "epochs": 4},
    "PKU, 1e-5": {**COMMON, "sentences": 160, "learning_rate": 1e-5, "batch_size": 4, "epochs": 12},
    "PKU, 4 layers, 1e-4":
        {**ALL_LAYERS, "sentences": 80, "learning_rate": 1e-4, "batch_size": 4, "epochs": 3},
}  # fmt: skip
LOW, HIGH, ENTITIES, LOWEST, DEEP = CELLS
ARMS = {f"x{k}": {"crf_lr_multiplier": float(k)} for k in (1, 100, 1000)}
ARMS["auto"] = {"crf_lr_multiplier": "auto"}
AT_HIGH_RATE = {name: {"crf_lr_multiplier": float(name[1:])} for name in ("x1", "x10", "x100")}
AT_HIGH_RATE["auto"] = ARMS["auto"]
ARMS_OF_CELLS = {LOW: ARMS, HIGH: AT_HIGH_RATE, ENTITIES: AT_HIGH_RATE, LOWEST: ARMS, DEEP: ARMS}
ZEROS = {"x1, zeros": {**ARMS["x1"], "start": "zeros"}}
ILLEGAL = measure("illegal_above_legal")
WHAT = "fraction of illegal transitions above a legal one"

CLAIM = Claim(
    title="At a learning rate of 1e-5 the transitions hardly learn; at 100 to 1,000 times the rate they become legal",
    source="BERT base on PKU: illegal transitions above legal ones at x1, none at x1000; F1 the same (Su 2020)",
    literature="bert4keras#188 the same; AdaSeq's resume.yaml uses x10,000",
    grids=(
        *(Grid({cell: CELLS[cell]}, arms) for cell, arms in ARMS_OF_CELLS.items()),
        Grid({LOW: CELLS[LOW]}, ZEROS),
    ),
    comparisons=(
        Comparison("x1000", "x1", "lower", 0.05, (LOW,), WHAT, ILLEGAL),
        Comparison("x100", "x1", "lower", 0.05, (LOW,), WHAT, ILLEGAL),
        Comparison("auto", "x1", "lower", 0.05, (LOW,), WHAT, ILLEGAL),
        Comparison("x1, zeros", "x1", "lower", 0.05, (LOW,), WHAT, ILLEGAL),
        Comparison("x1000", "x1", "same", 0.01, (LOW,), "F1"),
        Comparison("auto", "x1", "higher", 0.01, (LOW,), "F1"),
        Comparison("auto", "x1", "higher", 0.01, (HIGH,), "F1"),
        Comparison("x1000", "x1", "lower", 0.05, (LOWEST,), WHAT, ILLEGAL),
        Comparison("x100", "x1", "lower", 0.05, (LOWEST,), WHAT, ILLEGAL),
        Comparison("x1000", "x1", "same", 0.01, (LOWEST,), "F1"),
        Comparison("auto", "x1", "higher", 0.01, (LOWEST,), "F1"),
        Comparison("x100", "x1", "lower", 0.05, (ENTITIES,), WHAT, ILLEGAL),
        Comparison("auto", "x1", "lower", 0.05, (ENTITIES,), WHAT, ILLEGAL),
        Comparison("auto", "x1", "higher", 0.01, (ENTITIES,), "F1"),
        Comparison("x1000", "x1", "lower", 0.05, (DEEP,), WHAT, ILLEGAL),
        Comparison("auto", "x1", "lower", 0.05, (DEEP,), WHAT, ILLEGAL),
        Comparison("auto", "x1", "higher", 0.01, (DEEP,), "F1"),
    ),
)

"""What the learning rate of the transitions does: illegal transitions, their size, F1.

Before these runs, the grid was reduced from 786 runs of 300 sentences to save processor time: one BERT layer, short
sentences and few steps. Pilot runs were seen: at 1e-5 and after about 500 steps, 75 % of the illegal transitions scored
above a legal one with x1 and x100, none with x1000; after 60 steps, 75 % with each of them. So few steps at 1e-5 teach
nothing, thus the low learning rate is now 1e-4.

Three cells were added after the first results, with comparisons that were written down before they were measured: 480
steps at 1e-5, entities of the People's Daily with seven tags, and four layers. Later, in the same way: two layers, and
the multipliers between and above those of the source; and at last constraints, which the defaults have.
"""

from experiments.claim import Claim, Grid
from experiments.verdicts import Comparison, measure

COMMON = {"corpus": "pfr199801", "lengths": (20, 40), "bert": "chinese", "head_lr_multiplier": 1.0,
          "constraints": False, "masked": True}  # fmt: skip
ONE_LAYER = {**COMMON, "bert_layers": 1}
FEW = {"sentences": 80, "learning_rate": 1e-4, "batch_size": 4, "epochs": 3}
CELLS = {
    "PKU, 1e-4": {**ONE_LAYER, **FEW},
    "PKU, 1e-3": {**ONE_LAYER, "sentences": 160, "learning_rate": 1e-3, "batch_size": 16, "epochs": 4},
    "People's Daily, 1e-3": {
        **ONE_LAYER,
        "corpus": "people_daily",
        "sentences": 320,
        "learning_rate": 1e-3,
        "batch_size": 8,
        "epochs": 4,
    },
    "PKU, 1e-5": {**ONE_LAYER, "sentences": 160, "learning_rate": 1e-5, "batch_size": 4, "epochs": 12},
    "PKU, 4 layers, 1e-4": {**COMMON, **FEW},
    "PKU, 2 layers, 1e-4": {**COMMON, **FEW, "bert_layers": 2},
}
LOW, HIGH, ENTITIES, LOWEST, DEEP, MIDDLE = CELLS
CONSTRAINED = tuple(f"{cell}, constraints" for cell in (HIGH, ENTITIES))
CELLS |= {f"{cell}, constraints": {**CELLS[cell], "constraints": True} for cell in (HIGH, ENTITIES)}
MULTIPLIERS = {  # the first ones were measured first
    LOW: (1, 100, 1000, 3, 10, 33, 333),
    HIGH: (1, 10, 100, 33, 333),
    ENTITIES: (1, 10, 100, 33, 333),
    LOWEST: (1, 100, 1000, 333),
    DEEP: (1, 100, 1000),
    MIDDLE: (1, 100, 1000),
    **dict.fromkeys(CONSTRAINED, (1, 100, 333)),
}
ARMS_OF_CELLS = {
    cell: {**{f"x{k}": {"crf_lr_multiplier": float(k)} for k in multipliers}, "auto": {"crf_lr_multiplier": "auto"}}
    for cell, multipliers in MULTIPLIERS.items()
}
ZEROS = {"x1, zeros": {"crf_lr_multiplier": 1.0, "start": "zeros"}}
ILLEGAL = measure("illegal_above_legal")
SIZE = measure("size_over_gap")
WHAT = "fraction of illegal transitions above a legal one"

CLAIM = Claim(
    title="At a learning rate of 1e-5 the transitions hardly learn; at 100 to 1,000 times the rate, fewer illegal ones "
    "score above legal ones",
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
        Comparison("x1000", "x1", "lower", 0.05, (MIDDLE,), WHAT, ILLEGAL),
        Comparison("auto", "x1", "lower", 0.05, (MIDDLE,), WHAT, ILLEGAL),
        Comparison("auto", "x1", "higher", 0.01, (MIDDLE,), "F1"),
        *(Comparison("auto", "x1", "higher", 0.01, (cell,), "F1") for cell in CONSTRAINED),
        *(Comparison(f"x{k}", "x1", "lower", 0.05, (LOW,), WHAT, ILLEGAL) for k in (3, 10, 33, 333)),
        Comparison("x333", "x1", "lower", 0.05, (LOWEST,), WHAT, ILLEGAL),
        *(
            Comparison(
                "auto", "x1", "higher", 0.1, (cell,), "size of the transitions over the gap of the emissions", SIZE
            )
            for cell in (LOWEST, LOW, HIGH)
        ),
    ),
)

"""What the learning rate of the transitions does: illegal transitions, their size, F1.

Before these runs, the grid was reduced from 786 runs of 300 sentences to save processor time: one BERT layer, short
sentences and few steps. Pilot runs were seen: at 1e-5 and after about 500 steps, 75 % of the illegal transitions
scored above a legal one with x1 and x100, none with x1000; after 60 steps, 75 % with each of them. So few steps at
1e-5 teach nothing, thus the low learning rate is now 1e-4.

Three cells were added after the first results, with comparisons that were written down before they were measured: 480
steps at 1e-5, entities of the People's Daily with seven tags, and four layers. Later, in the same way: two layers, and
the multipliers between and above those of the source; and at last constraints, which the defaults have. The title said
"they become legal" until the results were in. The rows with illegal paths masked were written long after the runs, from
the same models, so nothing is claimed of them.

The source found its F1 the same on 12 layers. On fewer layers it says nothing of it, so nothing is claimed of its
multipliers there; that `auto` gains is our own claim.

The cell of 12 layers was declared before any of its runs. Prediction: with x1, most of the illegal transitions that
start above a legal one stay so; with x1000, none; F1 as decoded gains at most .01, F1 with illegal paths masked
nothing, because the gap of the emissions is several times as large as the transitions.
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
DEEPEST, DEEPEST_SEEDS = "PKU, 12 layers, 2,560 sentences, 2e-5", 4
DEEPEST_CELL = {**COMMON, "bert": "deep", "sentences": 2560, "learning_rate": 2e-5, "batch_size": 16, "epochs": 3}
DEEPEST_ARMS = {f"x{k}": {"crf_lr_multiplier": float(k)} for k in (1, 100, 1000)}
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
MASKED = measure("constrained_score")
WHAT_MASKED = "F1, illegal paths masked"
WHAT_SIZE = "size of the transitions over the gap of the emissions"
WHAT = "fraction of illegal transitions above a legal one"

CLAIM = Claim(
    title="At a learning rate of 1e-5 the transitions hardly learn; at 100 to 1,000 times the rate, fewer illegal ones "
    "score above legal ones",
    source="BERT base on PKU: illegal transitions above legal ones at x1, whose size is a tenth of the gap of "
    "the emissions, none at x1000; F1 the same (Su 2020)",
    literature="bert4keras#188 the same; AdaSeq's resume.yaml uses x10,000",
    grids=(
        *(Grid({cell: CELLS[cell]}, arms) for cell, arms in ARMS_OF_CELLS.items()),
        Grid({LOW: CELLS[LOW]}, ZEROS),
        Grid({DEEPEST: DEEPEST_CELL}, DEEPEST_ARMS, DEEPEST_SEEDS),
    ),
    comparisons=(
        Comparison("x1000", "x1", "lower", 0.05, (LOW,), WHAT, ILLEGAL),
        Comparison("x100", "x1", "lower", 0.05, (LOW,), WHAT, ILLEGAL),
        Comparison("auto", "x1", "lower", 0.05, (LOW,), WHAT, ILLEGAL),
        Comparison("x1, zeros", "x1", "lower", 0.05, (LOW,), WHAT, ILLEGAL),
        Comparison("x1000", "x1", "", 0.01, (LOW,), "F1"),
        Comparison("auto", "x1", "higher", 0.01, (LOW,), "F1"),
        Comparison("auto", "x1", "higher", 0.01, (HIGH,), "F1"),
        Comparison("x1000", "x1", "lower", 0.05, (LOWEST,), WHAT, ILLEGAL),
        Comparison("x100", "x1", "lower", 0.05, (LOWEST,), WHAT, ILLEGAL),
        Comparison("x1000", "x1", "", 0.01, (LOWEST,), "F1"),  # x1000 is "auto" here
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
        *(Comparison("auto", "x1", "higher", 0.1, (cell,), WHAT_SIZE, SIZE) for cell in (LOWEST, LOW, HIGH)),
        *(
            Comparison("x1000" if cell == LOWEST else "auto", "x1", "", 0.01, (cell,), WHAT_MASKED, MASKED)
            for cell in (LOWEST, LOW, HIGH, MIDDLE, DEEP)
        ),
        *(
            Comparison(arm, "x1", claimed, margin, (DEEPEST,), what, numbers, DEEPEST_SEEDS)
            for arm in ("x1000", "x100")
            for claimed, margin, what, numbers in (
                ("lower", 0.05, WHAT, ILLEGAL),
                ("same", 0.01, "F1", measure("score")),
                ("same", 0.01, WHAT_MASKED, MASKED),
                ("higher", 0.1, WHAT_SIZE, SIZE),
                ("", 0.5, "gap of the emissions", measure("emission_gap")),
            )
        ),
    ),
)

"""Prior weight decay, mixout and layer-wise learning rates, with and without Adam's bias correction."""

from experiments.claim import Claim, Grid, crossed
from experiments.claims.c04_bias_correction import ENTITIES, TASKS
from experiments.verdicts import Comparison

CELLS = {
    "People's Daily": {**ENTITIES["People's Daily"], "epochs": 10},
    "RTE": {**TASKS["RTE"], "epochs": 5},
    "ChnSentiCorp": {"corpus": "chnsenticorp", "sentences": 500, "bert": "chinese", "learning_rate": 3e-4,
                     "batch_size": 16, "epochs": 5},
}  # fmt: skip
METHODS = {
    "plain": {},
    "prior decay": {"prior_decay": 0.1, "weight_decay": 0.0},
    "mixout": {"mixout": 0.7},
    "layer-wise .95": {"layerwise_decay": 0.95},
    "layer-wise .8": {"layerwise_decay": 0.8},
}
ARMS = crossed(METHODS, {"corrected": {"bias_correction": True}, "uncorrected": {"bias_correction": False}})

CLAIM = Claim(
    title="With bias correction, prior weight decay, mixout and layer-wise decay bring nothing",
    source="no significant gain (002); layer-wise decay helps (004)",
    literature="Sun 2019, IMDb, factor .95: 94.60 -> 94.51",
    grids=tuple(Grid({name: cell}, ARMS) for name, cell in CELLS.items()),
    comparisons=tuple(
        Comparison(f"{method}, {adam}", f"plain, {adam}", "same", 0.01, (cell,))
        for cell in CELLS
        for adam in ("corrected", "uncorrected")
        for method in list(METHODS)[1:]
    ),
    axis="method",
)

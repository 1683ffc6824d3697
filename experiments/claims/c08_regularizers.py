"""Prior weight decay, mixout and layer-wise learning rates, with Adam's bias correction.

Before these runs, the grid was reduced from 240 runs to save processor time: the named entities of c04, whose corrected
runs are the plain ones here, and its uncorrected ones.
"""

from experiments.claim import Claim, Grid
from experiments.claims.c04_bias_correction import ENTITIES, LOW
from experiments.verdicts import Comparison

METHODS = {
    "layer-wise .8": {"layerwise_decay": 0.8},
    "prior decay": {"prior_decay": 0.1, "weight_decay": 0.0},
    "mixout": {"mixout": 0.7},
}
ARMS = {name: {"bias_correction": True, **method} for name, method in {"plain": {}, **METHODS}.items()}

CLAIM = Claim(
    title="With bias correction, prior weight decay, mixout and layer-wise decay bring nothing",
    source="no significant gain (002); layer-wise decay helps (004)",
    literature="Sun 2019, IMDb, factor .95: 94.60 -> 94.51",
    grids=(Grid({LOW: ENTITIES[LOW]}, ARMS),),
    comparisons=tuple(Comparison(method, "plain", "same", 0.02, (LOW,), "F1") for method in METHODS),
)

"""Prior weight decay, mixout and layer-wise learning rates, with Adam's bias correction.

Before these runs, the grid was reduced from 240 runs to save processor time: the word segmentation of c04, whose
corrected runs are the plain ones here. The runs without bias correction were added later, before they were measured;
the title named them only after the results.
"""

from experiments.claim import Claim, Grid
from experiments.claims.c04_bias_correction import CELL, WORDS
from experiments.verdicts import Comparison

METHODS = {
    "mixout": {"mixout": 0.7},
    "prior decay": {"prior_decay": 0.1, "weight_decay": 0.0},
    "layer-wise .8": {"layerwise_decay": 0.8},
}
ARMS = {"plain": {}, **METHODS}
UNCORRECTED = {f"{name}, uncorrected": {**arm, "bias_correction": False} for name, arm in ARMS.items()}

CLAIM = Claim(
    title="With bias correction, prior weight decay, mixout and layer-wise decay bring nothing; without it, they help",
    source="no significant gain (Stable BERT 2020); layer-wise decay helps (xv44586 2020)",
    literature="Sun 2019, IMDb, factor .95: 94.58 -> 94.60; a reproduction: 94.51 -> 94.60",
    grids=(Grid(WORDS, ARMS), Grid(WORDS, UNCORRECTED)),
    comparisons=(
        *(Comparison(method, "plain", "same", 0.01, (CELL,), "F1") for method in METHODS),
        *(
            Comparison(f"{method}, uncorrected", "plain, uncorrected", "higher", 0.01, (CELL,), "F1")
            for method in METHODS
        ),
    ),
)

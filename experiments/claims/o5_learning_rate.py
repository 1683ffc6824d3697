"""The learning rate of fine-tuning itself, by the encoder and the size of the data.

Declared before any of its runs; the runs at 5e-5 and 2e-4 on 160 sentences with 12 layers are those of c03b. Stored
runs of another claim were known: on 300 sentences of the People's Daily with 4 layers, F1 .454 at 5e-5 and 20 epochs,
.557 at 3e-4 and 30 epochs. Three seeds: differences smaller than about .02 stay undecided. The rows of 2e-5 were
written after its first runs had been seen, so nothing is claimed of them.
"""

from experiments.claim import Claim, Grid
from experiments.claims.c03b_where_a_crf_helps import FEW, PEOPLE, PKU
from experiments.verdicts import Comparison

CELLS = {
    "PKU, 12 layers, 160 sentences": {**PKU, **FEW, "constraints": True},
    "PKU, 4 layers, 160 sentences": {**PKU, **FEW, "bert": "chinese", "constraints": True},
    "PKU, 4 layers, 640 sentences": {**PKU, **FEW, "bert": "chinese", "sentences": 640, "constraints": True},
    "People's Daily, 4 layers, 160 sentences": {**PEOPLE, **FEW, "bert": "chinese", "constraints": True},
    "People's Daily, 12 layers, 160 sentences": {**PEOPLE, **FEW, "constraints": True},
}
RATES = ("5e-5", "2e-4", "5e-4", "1e-3", "2e-5")  # the most decisive first
ARMS = {rate: {"learning_rate": float(rate)} for rate in RATES}

CLAIM = Claim(
    title="For fine-tuning, learning rates of 2e-5 to 5e-5 are right; above 1e-4, a BERT forgets",
    source="rates above 1e-4 forget (xv44586 2020)",
    literature="Devlin 2019 chooses among 2e-5, 3e-5, 5e-5 (BERT base and large)",
    grids=tuple(Grid({cell: settings}, ARMS) for cell, settings in CELLS.items()),
    comparisons=tuple(
        Comparison(rate, "5e-5", "" if rate == "2e-5" else "lower", 0.01, (cell,), "F1")
        for cell in CELLS
        for rate in ("2e-4", "5e-4", "1e-3", "2e-5")
    ),
    seeds=3,
)

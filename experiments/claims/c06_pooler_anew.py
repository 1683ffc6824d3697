"""A re-initialized pooler.

Before these runs, 1,000 examples were reduced to 256 of at most 48 tokens, to save processor time, and CoLA was left
out after one seed: so little of it teaches a head next to nothing (see c04). MRPC was left out after two seeds, because
each of their five runs answered the same for all pairs.
"""

from experiments.claim import Claim, Grid
from experiments.claims.c04_bias_correction import TASKS
from experiments.verdicts import Comparison

CELLS = {"STS-B": {**TASKS["STS-B"], "epochs": 5}}
ARMS = {
    "pooler loaded": {"pool": "pooler"},
    "pooler anew": {"pool": "pooler", "skip_pooler": True},
    "no pooler": {"pool": "first"},
}

CLAIM = Claim(
    title="A re-initialized pooler always helps",
    source="a certain help for classification, no figure (Stable BERT 2020)",
    literature="users of MobileBERT find the pooler harmful",
    grids=tuple(Grid({name: cell}, ARMS) for name, cell in CELLS.items()),
    comparisons=(
        *(Comparison("pooler anew", "pooler loaded", "higher", 0.01, (cell,)) for cell in CELLS),
        *(Comparison("no pooler", "pooler loaded", "higher", 0.01, (cell,)) for cell in CELLS),
    ),
    seeds=5,
)

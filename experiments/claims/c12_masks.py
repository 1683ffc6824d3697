"""Which tokens further pretraining hides.

Before these runs, 1,000 steps of 128 tokens and 500 texts of 5 epochs were reduced, to save processor time.
"""

from experiments.claim import Claim, Grid
from experiments.claims.c09_intermediate_task import CHINESE
from experiments.verdicts import Comparison

CELLS = {"ChnSentiCorp": {**CHINESE, "corpus": "chnsenticorp", "sentences": 300, "max_length": 64, "epochs": 4}}
STAGE = {"texts": "task", "length": 64, "batch_size": 16, "steps": 300}
MASKS = {
    "dynamic": {},
    "static": {"static": True},
    "selected by entropy": {"mask": "selected"},
    "words": {"mask": "words"},
    "spans": {"mask": "spans"},
}
ARMS = {"none": {}, **{name: {"pretraining": ({**STAGE, **mask},)} for name, mask in MASKS.items()}}

CLAIM = Claim(
    title="For further pretraining, selective masks are better than dynamic masks, which are better than static masks",
    source="selective > dynamic > static; selection by entropy not tried (xv44586 2020)",
    literature="not replicated",
    grids=(Grid(CELLS, ARMS),),
    comparisons=(
        Comparison("selected by entropy", "dynamic", "higher", 0.01, ("ChnSentiCorp",), "accuracy"),
        Comparison("dynamic", "static", "higher", 0.01, ("ChnSentiCorp",), "accuracy"),
        Comparison("dynamic", "none", "higher", 0.01, ("ChnSentiCorp",), "accuracy"),
        Comparison("words", "dynamic", "higher", 0.01, ("ChnSentiCorp",), "accuracy"),
        Comparison("spans", "dynamic", "higher", 0.01, ("ChnSentiCorp",), "accuracy"),
    ),
    seeds=5,
)

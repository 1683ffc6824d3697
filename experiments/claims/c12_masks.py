"""Which tokens further pretraining hides."""

from experiments.claim import Claim, Grid
from experiments.claims.c09_intermediate_task import CHINESE
from experiments.verdicts import Comparison

CELLS = {"ChnSentiCorp": {**CHINESE, "corpus": "chnsenticorp", "sentences": 500, "epochs": 5}}
STAGE = {"texts": "task", "length": 128, "batch_size": 16, "steps": 1000}
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

"""Further pretraining on the domain, the task, or both, and for how many steps.

The Chinese BERT has been pretrained on the training texts of all corpora, so the English one is pretrained further.
"""

from experiments.claim import Claim, Grid
from experiments.claims.c04_bias_correction import ENGLISH
from experiments.verdicts import Comparison

CELLS = {"MRPC": {**ENGLISH, "corpus": "mrpc", "sentences": 500, "epochs": 5}}
STEPS = (500, 1000, 2000, 4000)
STAGE = {"length": 64, "batch_size": 16}
TASK = {**STAGE, "texts": "task"}
DOMAIN = {**STAGE, "texts": ("mrpc", "stsb", "rte")}
ARMS = {
    "2 stages": {},
    "3 stages, 500 steps": {"pretraining": ({**TASK, "steps": 500},)},
    "4 stages, 1000 and 500 steps": {"pretraining": ({**DOMAIN, "steps": 1000}, {**TASK, "steps": 500})},
    **{f"domain, {steps} steps": {"pretraining": ({**DOMAIN, "steps": steps},)} for steps in STEPS},
    **{f"3 stages, {steps} steps": {"pretraining": ({**TASK, "steps": steps},)} for steps in STEPS[1:]},
}

CLAIM = Claim(
    title="Further pretraining on the task helps, on the domain and then the task most; too many steps hurt",
    source="4 stages best, then 3, then 2; about 100,000 steps are best (xv44586 2020)",
    literature="Sun 2019, IMDb: best at 100,000 steps; Gururangan 2020: domain, then task",
    grids=(Grid(CELLS, ARMS),),
    comparisons=(
        Comparison("3 stages, 500 steps", "2 stages", "higher", 0.01, ("MRPC",), "F1"),
        Comparison("4 stages, 1000 and 500 steps", "3 stages, 500 steps", "higher", 0.01, ("MRPC",), "F1"),
        Comparison("3 stages, 4000 steps", "3 stages, 500 steps", "lower", 0.01, ("MRPC",), "F1"),
        Comparison("domain, 4000 steps", "domain, 500 steps", "higher", 0.01, ("MRPC",), "F1"),
    ),
    seeds=5,
)

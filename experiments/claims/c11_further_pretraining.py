"""Further pretraining on the domain, the task, or both, and for how many steps.

The Chinese BERT has been pretrained on the training texts of all corpora, so the English one is pretrained further.
Before these runs, up to 4,000 steps of 16 texts of 64 tokens were reduced, to save processor time, and MRPC was
replaced by STS-B: 256 pairs of MRPC teach a head next to nothing (see c06).
"""

from experiments.claim import Claim, Grid
from experiments.claims.c04_bias_correction import ENGLISH
from experiments.verdicts import Comparison

CELLS = {"STS-B": {**ENGLISH, "corpus": "stsb", "epochs": 5}}
STEPS = (100, 400)
STAGE = {"length": 48, "batch_size": 8}
TASK = {**STAGE, "texts": "task"}
DOMAIN = {**STAGE, "texts": ("mrpc", "stsb", "rte")}
ARMS = {
    "2 stages": {},
    "3 stages, 100 steps": {"pretraining": ({**TASK, "steps": 100},)},
    "4 stages, 200 and 100 steps": {"pretraining": ({**DOMAIN, "steps": 200}, {**TASK, "steps": 100})},
    **{f"domain, {steps} steps": {"pretraining": ({**DOMAIN, "steps": steps},)} for steps in STEPS},
    **{f"3 stages, {steps} steps": {"pretraining": ({**TASK, "steps": steps},)} for steps in STEPS[1:]},
}

CLAIM = Claim(
    title="Further pretraining on the task helps, on the domain and then the task most; too many steps hurt",
    source="4 stages best, then 3, then 2; about 100,000 steps are best (xv44586 2020)",
    literature="Sun 2019, IMDb: best at 100,000 steps; Gururangan 2020: domain, then task",
    grids=(Grid(CELLS, ARMS),),
    comparisons=(
        Comparison("3 stages, 100 steps", "2 stages", "higher", 0.01, ("STS-B",), "correlation"),
        Comparison("4 stages, 200 and 100 steps", "3 stages, 100 steps", "higher", 0.01, ("STS-B",), "correlation"),
        Comparison("3 stages, 400 steps", "3 stages, 100 steps", "lower", 0.01, ("STS-B",), "correlation"),
        Comparison("domain, 400 steps", "domain, 100 steps", "higher", 0.01, ("STS-B",), "correlation"),
    ),
    seeds=5,
)

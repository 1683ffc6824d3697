"""A comparison on the built-in corpus, which needs no data: it shows in a minute that the experiments run.

    python -m experiments o0 --results again

The corpus is too small for more than a sign of the gain.
"""

from experiments.claim import Claim, Grid
from experiments.verdicts import Comparison, measure

CELL = "built-in corpus, CNN"
NETWORK = {"width": 32, "depth": 1, "dropout": 0.1, "lexicon": False, "ngrams": False}
SETTINGS = {"corpus": "mini", "sentences": 400, **NETWORK, "epochs": 5, "batch_size": 16, "masked": True}
ARMS = {"CRF": {"constraints": True}, "softmax": {"head": "softmax"}}

CLAIM = Claim(
    title="On the built-in corpus, a CRF with constraints is better than softmax",
    source="ours",
    literature="",
    grids=(Grid({CELL: SETTINGS}, ARMS),),
    comparisons=(
        Comparison(*ARMS, "higher", 0.01, (CELL,), "F1"),
        Comparison(*ARMS, "", 0.01, (CELL,), "F1, illegal paths masked", measure("score", "constrained_score")),
    ),
    seeds=5,
)

"""A small student of a larger teacher, on the sentences that the teacher has learned.

Declared before any run of the student. The runs of one and of four layers alone are those of c03b: F1 .79 and .80 with
the first seed.
"""

from experiments.claim import Claim, Grid
from experiments.claims.c03b_where_a_crf_helps import CELLS as HEADS
from experiments.claims.c03b_where_a_crf_helps import STRONG
from experiments.verdicts import Comparison

CELL = "PKU, 160 sentences"
LARGE = {**HEADS[STRONG], "constraints": True}
ARMS = {
    "1 layer, taught": {"bert_layers": 1, "teacher": {"bert_layers": None}},
    "1 layer": {"bert_layers": 1},
    "4 layers": {},
}

CLAIM = Claim(
    title="A small distilled model keeps the score of the large one",
    source="keeps the score with less time and memory, no figure (Chile 2020)",
    literature="TinyBERT (Jiao 2020): 4 layers keep 96.8 % of BERT base on GLUE, with further pretraining",
    grids=(Grid({CELL: LARGE}, ARMS),),
    comparisons=(
        Comparison("1 layer, taught", "4 layers", "not lower", 0.01, (CELL,), "F1"),
        Comparison("1 layer, taught", "1 layer", "", 0.01, (CELL,), "F1"),
    ),
)

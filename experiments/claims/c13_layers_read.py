"""Which layers of the BERT are read, and how they are combined.

Before these runs, the grid was reduced from 88 runs to save processor time: word segmentation with 160 short sentences,
whose runs with the last layer are those of c03b; classification with 160 short texts.

The vectors of the first token were added later, declared before any of their runs, on 1,000 texts: with 160, accuracy
is about .6.
"""

from experiments.claim import Claim, Grid
from experiments.claims.c03b_where_a_crf_helps import CELLS as HEADS
from experiments.claims.c03b_where_a_crf_helps import STRONG
from experiments.claims.c09_intermediate_task import CHINESE
from experiments.verdicts import Comparison

WORDS = {STRONG: {**HEADS[STRONG], "constraints": True}}
SENTIMENT = {"ChnSentiCorp": {**CHINESE, "epochs": 4, "corpus": "chnsenticorp", "sentences": 160, "max_length": 64}}
ARMS = {
    "last": {},
    "all, joined": {"read_layers": "all"},
    "all, mean": {"read_layers": "all", "layer_pooling": "mean"},
}
MORE = "ChnSentiCorp, 1,000 texts"
MORE_TEXTS = {MORE: {**SENTIMENT["ChnSentiCorp"], "sentences": 1000, "pool": "first"}}
FIRST = {"[CLS] of the last": {}, "[CLS] of all, joined": {"read_layers": "all"}}
CNN = {"CNN over layers": {"pool": "cnn", "read_layers": "all"}}

CLAIM = Claim(
    title="All layers joined are best; a CNN over the layers gains",
    source="all joined best, the last nearly as good; a CNN +8 points on hate speech (xv44586 2020)",
    literature="Sun 2019, IMDb: a tie, 94.58; a reproduction: last 94.57, last four 94.50, mean 94.42",
    grids=(Grid(WORDS, ARMS), Grid(SENTIMENT, {"last": ARMS["last"], **CNN}), Grid(MORE_TEXTS, FIRST, 5)),
    comparisons=(
        Comparison("all, joined", "last", "higher", 0.01, (STRONG,), "F1"),
        Comparison("all, mean", "last", "same", 0.01, (STRONG,), "F1"),
        Comparison("CNN over layers", "last", "higher", 0.02, ("ChnSentiCorp",), "accuracy"),
        Comparison("[CLS] of all, joined", "[CLS] of the last", "higher", 0.01, (MORE,), "accuracy", seeds=5),
    ),
)

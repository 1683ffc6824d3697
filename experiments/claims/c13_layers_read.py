"""Which layers of the BERT are read, and how they are combined."""

from experiments.claim import Claim, Grid
from experiments.verdicts import Comparison

COMMON = {"bert": "chinese", "learning_rate": 3e-4, "batch_size": 16, "epochs": 5}
SENTIMENT = {"ChnSentiCorp": {**COMMON, "corpus": "chnsenticorp", "sentences": 1000}}
ENTITIES = {"People's Daily": {**COMMON, "corpus": "people_daily", "sentences": 1000}}
ARMS = {
    "last": {},
    "all, joined": {"read_layers": "all"},
    "all, mean": {"read_layers": "all", "layer_pooling": "mean"},
    "all, weighted": {"read_layers": "all", "layer_pooling": "weighted"},
    "last two, joined": {"read_layers": "-2,-1"},
}
OTHERS = list(ARMS)[2:]
CNN = {"CNN over layers": {"pool": "cnn", "read_layers": "all"}}

CLAIM = Claim(
    title="All layers joined are best; a CNN over the layers gains",
    source="all joined best, the last nearly as good; a CNN +8 points on hate speech (004)",
    literature="contradicted by Sun 2019, IMDb: last 94.57, last four 94.50, mean 94.42",
    grids=(Grid(ENTITIES, ARMS), Grid(SENTIMENT, {**ARMS, **CNN})),
    comparisons=(
        Comparison("all, joined", "last", "higher", 0.005, ("People's Daily",), "F1"),
        Comparison("all, joined", "last", "higher", 0.005, ("ChnSentiCorp",), "accuracy"),
        Comparison("CNN over layers", "last", "higher", 0.005, ("ChnSentiCorp",), "accuracy"),
        *(
            Comparison(arm, "last", "same", 0.005, (cell,))
            for cell in (*ENTITIES, *SENTIMENT)
            for arm in list(ARMS)[2:]
        ),
    ),
    axis="layers",
)

"""Fine-tuning on another task first, related or not.

Before these runs, first tasks of 3,000 items and 3 epochs and all of Weibo with 10 epochs were reduced, to save
processor time. Runs on 256 pairs of RTE were removed: they taught next to nothing (accuracy .50). "Weibo, alone" with
seeds 1 to 4 are the runs "Weibo, without" of c15, which have the same settings.
"""

from experiments.claim import Claim, Grid, Stored
from experiments.verdicts import Comparison, measure

CHINESE = {"bert": "chinese", "learning_rate": 3e-4, "batch_size": 16}
WEIBO = {"Weibo": {**CHINESE, "corpus": "weibo", "sentences": 400, "epochs": 6}}
BEFORE_WEIBO = {
    "alone": {},
    "after People's Daily": {"before": {**CHINESE, "corpus": "people_daily", "sentences": 1500, "epochs": 2}},
    "after ChnSentiCorp": {"before": {**CHINESE, "corpus": "chnsenticorp", "sentences": 1500, "epochs": 2}},
}

CLAIM = Claim(
    title="An intermediate task helps if it is related",
    source="MSRA entities before 400 sentences of another domain: no clear gain (Stable BERT 2020)",
    literature="Zhang 2021: RTE +12.3",
    grids=(Grid(WEIBO, BEFORE_WEIBO),),
    comparisons=(
        Comparison("after People's Daily", "alone", "higher", 0.01, ("Weibo",), "F1"),
        Comparison("after ChnSentiCorp", "alone", "same", 0.01, ("Weibo",), "F1"),
    ),
    seeds=5,
    stored=(
        Stored("glue_rte.json", Comparison("defaults, from stsb", "defaults", "higher", 0.01, what="RTE, all "
                                           "of both, accuracy", numbers=measure("accuracy"))),
    ),
)  # fmt: skip

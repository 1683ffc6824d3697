"""The four rows of the source on models without a BERT.

Before these runs, 1,000 sentences of all lengths were reduced to 300 short ones, to save processor time. The title
named CRF-2 only after the results. The source has CRF-3 on a BERT alone, so nothing is claimed of it here.
"""

from experiments.claim import Claim, Grid, Stored
from experiments.claims.c02_four_heads_on_one_layer import ARMS
from experiments.verdicts import Comparison, measure

COMMON = {
    "corpus": "pfr199801",
    "lengths": (20, 40),
    "sentences": 300,
    "width": 64,
    "lexicon": False,
    "ngrams": False,
    "epochs": 6,
    "batch_size": 16,
    "constraints": False,
}
SEEDS = {"CNN": 8, "BiLSTM": 5}  # a BiLSTM takes ten times as long
CELLS = {name: {**COMMON, "encoder": name.lower()} for name in ("CNN", "BiLSTM")}

CLAIM = Claim(
    title="A higher learning rate of the CRF (CRF-2; the rows are those of c02) also helps on a CNN and a BiLSTM",
    source="helps in some cases, no figure (Su 2020)",
    literature="no replication known",
    grids=tuple(Grid({cell: settings}, ARMS, SEEDS[cell]) for cell, settings in CELLS.items()),
    comparisons=tuple(
        Comparison(first, second, claimed, 0.002, (cell,), "F1", seeds=SEEDS[cell])
        for cell in CELLS
        for first, second, claimed in (
            ("CRF-2", "CRF-1", "higher"),
            ("CRF-1", "softmax", "higher"),
            ("CRF-3", "CRF-1", ""),
        )
    ),
    stored=(
        Stored("pku_heads.json", Comparison("crf auto", "crf x1", "higher", 0.002, what="CNN, all of PFR 1998-01, F1",
                                            numbers=measure("f"))),
        Stored("pku_heads.json", Comparison("crf x1", "softmax", "higher", 0.002, what="CNN, all of PFR 1998-01, F1",
                                            numbers=measure("f"))),
    ),
)  # fmt: skip

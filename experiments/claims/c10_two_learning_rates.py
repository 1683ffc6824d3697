"""A learning rate for the BERT and a higher one for the BiLSTM and the CRF.

Before these runs, the grid was reduced from 60 runs to save processor time: one learning rate of the BERT, one layer,
160 short sentences.
"""

from experiments.claim import Claim, Grid
from experiments.verdicts import Comparison

CELL = "PKU, 1 layer, BERT 5e-5"
RATE = 5e-5
COMMON = {"corpus": "pfr199801", "lengths": (20, 40), "sentences": 160, "bert": "chinese", "bert_layers": 1,
          "encoder": "bilstm", "width": 64, "learning_rate": RATE, "batch_size": 16, "epochs": 4}  # fmt: skip
RATES = {"one rate": RATE, "head 1e-4": 1e-4, "head 1e-3": 1e-3, "head 1e-2": 1e-2}
MULTIPLES = {arm: round(rate / RATE, 4) for arm, rate in RATES.items()}  # the settings have multiples of the BERT's

CLAIM = Claim(
    title="BERT with a BiLSTM-CRF needs two learning rates",
    source="BERT 5e-5, 3e-5 or 2e-5, BiLSTM and CRF 1e-4, no figure (Chile 2020)",
    literature="HanLP and flair have two rates",
    grids=(
        Grid({CELL: COMMON}, {arm: {"head_lr_multiplier": k, "crf_lr_multiplier": k} for arm, k in MULTIPLES.items()}),
    ),
    comparisons=(
        Comparison("head 1e-4", "one rate", "higher", 0.01, (CELL,), "F1"),
        Comparison("head 1e-3", "one rate", "higher", 0.01, (CELL,), "F1"),
        Comparison("head 1e-3", "head 1e-4", "higher", 0.01, (CELL,), "F1"),
        Comparison("head 1e-2", "head 1e-4", "higher", 0.01, (CELL,), "F1"),
    ),
)

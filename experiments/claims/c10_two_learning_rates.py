"""A learning rate for the BERT and a higher one for the BiLSTM and the CRF.

Before these runs, the grid was reduced from 60 runs to save processor time: one learning rate of the BERT, one layer,
160 short sentences. Two rates of the BERT were added after the first results, before they were measured. No source has
a head slower than the BERT, so nothing is claimed of it. The cell of 12 layers was declared before any of its runs.
"""

from experiments.claim import Claim, Grid
from experiments.verdicts import Comparison

BERT_RATES = (5e-5, 2e-5, 2e-4)
COMMON = {"corpus": "pfr199801", "lengths": (20, 40), "sentences": 160, "bert": "chinese", "bert_layers": 1,
          "encoder": "bilstm", "width": 64, "batch_size": 16, "epochs": 4}  # fmt: skip
HEAD_RATES = {"one rate": None, "head 1e-4": 1e-4, "head 1e-3": 1e-3, "head 1e-2": 1e-2}


def cell_of(rate):
    """The name of the cell with this learning rate of the BERT: "PKU, 1 layer, BERT 5e-5"."""
    return f"PKU, 1 layer, BERT {rate:.0e}".replace("e-0", "e-")


def grid_of(rate):
    """The grid with this learning rate of the BERT; the settings of the head are multiples of it."""
    multiples = {arm: round((head or rate) / rate, 4) for arm, head in HEAD_RATES.items()}
    arms = {arm: {"head_lr_multiplier": k, "crf_lr_multiplier": k} for arm, k in multiples.items()}
    return Grid({cell_of(rate): {**COMMON, "learning_rate": rate}}, arms)


DEEP = "PKU, 12 layers, BERT 2e-5"
DEEP_CELL = {**COMMON, "bert": "deep", "bert_layers": None, "learning_rate": 2e-5, "epochs": 40, "patience": 40}
DEEP_SEEDS = 3
DEEP_ARMS = {
    f"head {name}": {"head_lr_multiplier": rate / 2e-5, "crf_lr_multiplier": rate / 2e-5}
    for name, rate in (("2e-5", 2e-5), ("1e-4", 1e-4), ("1e-3", 1e-3), ("1e-2", 1e-2))
}

CLAIM = Claim(
    title="BERT with a BiLSTM-CRF needs two learning rates",
    source="BERT 5e-5, 3e-5 or 2e-5, BiLSTM and CRF 1e-4, no figure (Chile 2020)",
    literature="HanLP and flair have two rates",
    grids=(*(grid_of(rate) for rate in BERT_RATES), Grid({DEEP: DEEP_CELL}, DEEP_ARMS, DEEP_SEEDS)),
    comparisons=tuple(
        Comparison(
            one,
            other,
            "" if (rate, one, other) == (2e-4, "head 1e-4", "one rate") else "higher",
            0.01,
            (cell_of(rate),),
            "F1",
        )
        for rate in BERT_RATES
        for one, other in (
            ("head 1e-4", "one rate"),
            ("head 1e-3", "one rate"),
            ("head 1e-3", "head 1e-4"),
            ("head 1e-2", "head 1e-4"),
        )
    )
    + tuple(
        Comparison(f"head {head}", "head 2e-5", "higher", 0.01, (DEEP,), "F1", seeds=DEEP_SEEDS)
        for head in ("1e-4", "1e-3", "1e-2")
    ),
)

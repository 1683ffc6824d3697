"""A learning rate for the BERT and a higher one for the BiLSTM and the CRF."""

from experiments.claim import Claim, Grid
from experiments.verdicts import Comparison

COMMON = {"corpus": "people_daily", "sentences": 1000, "bert": "chinese", "encoder": "bilstm", "width": 128,
          "batch_size": 16, "epochs": 5}  # fmt: skip
CELLS = {f"BERT {rate}": {**COMMON, "learning_rate": float(rate)} for rate in ("5e-5", "3e-5", "2e-5")}
HEADS = ("1e-4", "1e-3", "1e-2")


def _cell_and_arms(name, cell):
    """A grid whose arms set the rate of the BiLSTM and the CRF, which the settings have as multiples of the BERT's."""
    rates = {"one rate": cell["learning_rate"], **{f"head {rate}": float(rate) for rate in HEADS}}
    multiples = {arm: round(rate / cell["learning_rate"], 4) for arm, rate in rates.items()}
    return Grid({name: cell}, {arm: {"head_lr_multiplier": k, "crf_lr_multiplier": k} for arm, k in multiples.items()})


CLAIM = Claim(
    title="BERT with a BiLSTM-CRF needs two learning rates",
    source="BERT 5e-5, 3e-5 or 2e-5, BiLSTM and CRF 1e-4, no figure (003)",
    literature="HanLP and flair have two rates",
    grids=tuple(_cell_and_arms(name, cell) for name, cell in CELLS.items()),
    comparisons=(
        *(Comparison("head 1e-4", "one rate", "higher", 0.005, (cell,), "F1") for cell in CELLS),
        *(Comparison("head 1e-3", "head 1e-4", "higher", 0.005, (cell,), "F1") for cell in CELLS),
        *(Comparison("head 1e-2", "head 1e-4", "higher", 0.005, (cell,), "F1") for cell in CELLS),
    ),
    seeds=5,
    axis="learning rate of the BiLSTM and the CRF",
)

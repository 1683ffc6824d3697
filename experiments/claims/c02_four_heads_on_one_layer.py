"""The four rows of the source on one layer of a BERT.

After a pilot run of CRF-1, whose test score was printed, the corpus was reduced from 1,000 sentences and 5 epochs to
save time.
"""

from experiments.claim import Claim, Grid
from experiments.verdicts import Comparison

CELL = "PKU, 1 layer"
ARMS = {
    "CRF-1": {"learning_rate": 1e-3, "crf_lr_multiplier": 1.0},
    "CRF-2": {"learning_rate": 1e-3, "crf_lr_multiplier": 10.0},
    "CRF-3": {"learning_rate": 1e-2, "crf_lr_multiplier": 1.0},
    "softmax": {"learning_rate": 1e-3, "head": "softmax"},
}


def first_epoch(one, other):
    """The scores on the validation set after the first epoch."""
    return one["valid"][0], other["valid"][0]


CLAIM = Claim(
    title="On one layer of BERT, a CRF with a 10 times higher learning rate is best, then the plain CRF, then softmax",
    source="PKU F1: CRF-1 .925, CRF-2 .930, CRF-3 .747, softmax .907; after epoch 1 .914, .929, .673, .899 (000, 001)",
    literature="no replication known",
    grids=(
        Grid(
            {
                CELL: {
                    "corpus": "pfr199801", "sentences": 400, "bert": "chinese", "bert_layers": 1,
                    "head_lr_multiplier": 1.0, "epochs": 4, "batch_size": 16, "constraints": False,
                }
            },
            {name: settings for name, settings in ARMS.items()},
        ),
    ),
    comparisons=(
        Comparison("CRF-2", "CRF-1", "higher", 0.002, (CELL,), "F1"),
        Comparison("CRF-1", "softmax", "higher", 0.002, (CELL,), "F1"),
        Comparison("CRF-3", "CRF-1", "lower", 0.002, (CELL,), "F1"),
        Comparison("CRF-2", "CRF-1", "higher", 0.002, (CELL,), "validation F1 after epoch 1", first_epoch),
    ),
    axis="head",
)  # fmt: skip

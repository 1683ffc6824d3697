"""Linear models: n-gram features and a CRF, trained and used by NumPy alone."""

from kcrf.linear.chain import best_paths, expected_counts
from kcrf.linear.model import LinearModel
from kcrf.linear.packing import Packing
from kcrf.linear.pool import PooledTrainer
from kcrf.linear.training import (
    AdaGradTrainer,
    LBFGSTrainer,
    LinearBatch,
    SoftTarget,
    linear_batches,
    log_likelihood,
    loss_and_gradient,
)

__all__ = [
    "AdaGradTrainer",
    "LBFGSTrainer",
    "LinearBatch",
    "LinearModel",
    "Packing",
    "PooledTrainer",
    "SoftTarget",
    "best_paths",
    "expected_counts",
    "linear_batches",
    "log_likelihood",
    "loss_and_gradient",
]

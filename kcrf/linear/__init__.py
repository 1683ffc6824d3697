"""Linear models: n-gram features and a CRF, trained and used by NumPy alone."""

from kcrf.linear.model import LinearModel
from kcrf.linear.training import (
    AdaGradTrainer,
    LBFGSTrainer,
    LinearBatch,
    LinearTrainer,
    PooledTrainer,
    SoftTarget,
    linear_batches,
    log_likelihood,
    loss_and_gradient,
)

__all__ = ["AdaGradTrainer", "LBFGSTrainer", "LinearTrainer", "log_likelihood"]

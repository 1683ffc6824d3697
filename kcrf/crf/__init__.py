"""The linear-chain conditional random field as pure functions of tensors. See `kcrf.crf.functions`."""

from kcrf.chains import FORBIDDEN
from kcrf.crf.chain import Chain
from kcrf.crf.functions import (
    distillation_loss,
    entropy,
    expected_counts,
    log_likelihood,
    log_partition,
    marginals,
    path_score,
    top_k_paths,
    viterbi,
)

__all__ = [
    "log_likelihood",
    "viterbi",
    "marginals",
    "top_k_paths",
    "log_partition",
    "path_score",
    "entropy",
    "expected_counts",
    "distillation_loss",
    "Chain",
    "FORBIDDEN",
]

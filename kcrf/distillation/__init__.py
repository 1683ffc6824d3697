"""Learning from a trained model, the teacher: its answers as targets, and the losses that compare with them."""

from kcrf.distillation.targets import SoftTags
from kcrf.distillation.teachers import expected_targets, soften
from kcrf.layers.distillation import (
    LabelDistillationLoss,
    NumberDistillationLoss,
    SequenceDistillationLoss,
    TagDistillationLoss,
)

__all__ = [
    "LabelDistillationLoss",
    "NumberDistillationLoss",
    "SequenceDistillationLoss",
    "SoftTags",
    "TagDistillationLoss",
    "expected_targets",
    "soften",
]

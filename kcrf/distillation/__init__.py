"""Knowledge distillation: the predictions of a teacher as soft labels, and the losses for them."""

from kcrf.distillation.targets import SoftTags
from kcrf.layers.distillation import (
    LabelDistillationLoss,
    NumberDistillationLoss,
    SequenceDistillationLoss,
    TagDistillationLoss,
)

__all__ = ["SequenceDistillationLoss", "SoftTags"]

"""Knowledge distillation: the predictions of a teacher as soft labels, and the losses for them."""

from kcrf.layers.distillation import (
    LabelDistillationLoss,
    NumberDistillationLoss,
    SequenceDistillationLoss,
    SoftTags,
    TagDistillationLoss,
)

__all__ = ["SequenceDistillationLoss", "SoftTags"]

"""Adam and AdamW with optional bias correction, learning rates per variable, schedules.

bert4keras' `extend_with_*` are attributes of this folder, too.
"""

from typing import TYPE_CHECKING

from kcrf.optimizers.adam import Adam, AdamWeightDecay
from kcrf.optimizers.schedules import PiecewiseLinear, Warmup, WarmupLinearDecay
from kcrf.optimizers.variables import layerwise_decay, variable_table

if TYPE_CHECKING:
    from kcrf.bert4keras.optimizers import *  # noqa: F403
else:
    from kcrf.backend.old_names import of_optimizers as __getattr__

__all__ = [
    "AdamWeightDecay",
    "Adam",
    "WarmupLinearDecay",
    "PiecewiseLinear",
    "layerwise_decay",
    "variable_table",
    "Warmup",
]

"""Adam and AdamW with optional bias correction, learning rates per variable, schedules.

bert4keras' `extend_with_*` are attributes of this folder, too.
"""

from typing import TYPE_CHECKING

from kcrf.optimizers.adam import Adam, AdamWeightDecay
from kcrf.optimizers.schedules import PiecewiseLinear, Warmup, WarmupLinearDecay
from kcrf.optimizers.variables import layerwise_decay, variable_table

if TYPE_CHECKING:
    from kcrf.bert4keras.extensions import (
        extend_with_exponential_moving_average as extend_with_exponential_moving_average,
    )
    from kcrf.bert4keras.extensions import extend_with_gradient_accumulation as extend_with_gradient_accumulation
    from kcrf.bert4keras.extensions import extend_with_layer_adaptation as extend_with_layer_adaptation
    from kcrf.bert4keras.extensions import extend_with_lazy_optimization as extend_with_lazy_optimization
    from kcrf.bert4keras.extensions import extend_with_lookahead as extend_with_lookahead
    from kcrf.bert4keras.extensions import extend_with_parameter_wise_lr as extend_with_parameter_wise_lr
    from kcrf.bert4keras.extensions import extend_with_piecewise_linear_lr as extend_with_piecewise_linear_lr
    from kcrf.bert4keras.extensions import extend_with_weight_decay as extend_with_weight_decay
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

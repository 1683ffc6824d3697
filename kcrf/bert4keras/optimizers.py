"""bert4keras' `optimizers` by their names."""

from kcrf.bert4keras.absent_names import page
from kcrf.bert4keras.extensions import (
    extend_with_exponential_moving_average,
    extend_with_gradient_accumulation,
    extend_with_layer_adaptation,
    extend_with_lazy_optimization,
    extend_with_lookahead,
    extend_with_parameter_wise_lr,
    extend_with_piecewise_linear_lr,
    extend_with_weight_decay,
)
from kcrf.optimizers import Adam, AdamWeightDecay

__getattr__ = page("optimizers")
__all__ = [
    "Adam",
    "AdamWeightDecay",
    "extend_with_exponential_moving_average",
    "extend_with_gradient_accumulation",
    "extend_with_layer_adaptation",
    "extend_with_lazy_optimization",
    "extend_with_lookahead",
    "extend_with_parameter_wise_lr",
    "extend_with_piecewise_linear_lr",
    "extend_with_weight_decay",
]

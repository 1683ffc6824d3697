"""Adam and AdamW with optional bias correction, learning rates per variable, schedules, bert4keras' `extend_with_*`."""

from kcrf.optimizers.adam import Adam, AdamWeightDecay
from kcrf.optimizers.extensions import (
    extend_with_exponential_moving_average,
    extend_with_gradient_accumulation,
    extend_with_layer_adaptation,
    extend_with_lazy_optimization,
    extend_with_lookahead,
    extend_with_parameter_wise_lr,
    extend_with_piecewise_linear_lr,
    extend_with_weight_decay,
)
from kcrf.optimizers.schedules import PiecewiseLinear, Warmup, WarmupLinearDecay
from kcrf.optimizers.variables import layerwise_decay, variable_table

__all__ = [
    "Adam",
    "AdamWeightDecay",
    "PiecewiseLinear",
    "Warmup",
    "WarmupLinearDecay",
    "extend_with_exponential_moving_average",
    "extend_with_gradient_accumulation",
    "extend_with_layer_adaptation",
    "extend_with_lazy_optimization",
    "extend_with_lookahead",
    "extend_with_parameter_wise_lr",
    "extend_with_piecewise_linear_lr",
    "extend_with_weight_decay",
    "layerwise_decay",
    "variable_table",
]

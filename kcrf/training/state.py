"""The state of training, saved after each epoch and restored when the run is resumed."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kcrf.backend import ops, random_state
from kcrf.runs import RunFolder, RunWriter
from kcrf.training.history import TrainingHistory


def save_state(folder: RunWriter, model: Any, history: TrainingHistory) -> None:
    """Writes the state of a compiled model and its history with a `RunWriter`."""
    # After the last epoch no state is needed, and JAX may have donated the buffers of the optimizer.
    arrays = [] if history.is_done() else [*map(ops.convert_to_numpy, _variables(model)), random_state()]
    folder.save_state(history.get_state(), arrays)


def load_history(folder: RunFolder, history: TrainingHistory) -> list[np.ndarray]:
    """Restores a history from the state in a `RunFolder`, if there is a state. Returns the arrays of the state."""
    if not folder.has_state():
        return []
    progress, arrays = folder.read_state()
    history.set_state(progress, is_over=not arrays)  # only a run that is over writes no arrays
    return arrays


def load_state(path: object, arrays: Sequence[np.ndarray], model: Any) -> np.ndarray:
    """Restores a compiled model from the arrays of a state. Returns the state of the random generator."""
    *values, random = arrays
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)
    variables = _variables(model)
    shapes = [tuple(variable.shape) for variable in variables]
    if shapes != [value.shape for value in values]:
        raise ValueError(
            f"{path}: the state of training must have the {len(shapes)} arrays of this model. "
            f"Received: {len(values)}, or others"
        )
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
    return random


def _variables(model: Any) -> list[Any]:
    """The variables of a model, with the counters of its random seeds, and of its optimizer."""
    metrics = {id(variable) for variable in model.metrics_variables}
    return [v for v in (*model.variables, *model.optimizer.variables) if id(v) not in metrics]

"""Saves what training has reached after each epoch, and restores it in a run that is resumed."""

from kcrf.backend import ops, random_state

__all__ = ["RunSaver", "restore_state", "training_state"]


class RunSaver:
    """Writes the files of a run after each epoch, and reads the state back to resume it.

    Args:
        folder: The `RunFolder`.
        tagger: The `Tagger` around the model.
        model: The compiled model.
        history: The `TrainingHistory`.
    """

    def __init__(self, folder, tagger, model, history):
        self._folder, self._tagger, self._model, self._history = folder, tagger, model, history

    def save(self, is_best):
        """Writes log, transitions, state, and the weights if they are the best."""
        if is_best:
            self._folder.save_weights(self._tagger.model)
        self._folder.save_log(self._history.rows)
        if self._history.transitions:
            self._folder.save_transitions(self._tagger.scheme, self._history.transitions)
        # After the last epoch no state is needed, and JAX may have donated the buffers of the optimizer.
        arrays = [] if self._history.is_done() else training_state(self._model)
        self._folder.save_state(self._history.get_state(), arrays)

    def restore(self):
        """Puts the state in the folder into history and model. Returns the state of random numbers, None if done."""
        progress, arrays = self._folder.read_state()
        self._history.set_state(progress)
        if self._history.is_done():
            return None
        try:
            return restore_state(self._model, arrays)
        except ValueError as error:
            raise ValueError(f"{self._folder.path}: {error}") from None


def training_state(model):
    """A list of arrays: the variables of a compiled model and its optimizer, then the state of random numbers."""
    return [*(ops.convert_to_numpy(variable) for variable in _variables(model)), random_state()]


def restore_state(model, arrays):
    """Assigns to a compiled model the variables in what `training_state` returned.

    Returns:
        The state of random numbers, for `kcrf.backend.set_random_state`.

    Raises:
        ValueError: The arrays are those of another model.
    """
    *values, random = arrays
    model.optimizer.build(model.trainable_variables)
    variables = _variables(model)
    shapes = [tuple(variable.shape) for variable in variables]
    if shapes != [value.shape for value in values]:
        raise ValueError(
            f"the state of training must have the {len(shapes)} arrays of this model. "
            f"Received: {len(values)}, or others"
        )
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
    return random


def _variables(model):
    """The variables of a model, with the counters of its random seeds, and of its optimizer."""
    metrics = {id(variable) for variable in model.metrics_variables}
    return [v for v in (*model.variables, *model.optimizer.variables) if id(v) not in metrics]

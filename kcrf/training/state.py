"""Saves what training has reached after each epoch, and restores it in a run that is resumed."""

from kcrf.backend import ops, random_state

__all__ = ["RunSaver", "load_state", "save_state"]


class RunSaver:
    """Writes the files of a run after each epoch, and reads the state back to resume it.

    Args:
        folder: The `RunWriter`.
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
        save_state(self._folder, self._model, self._history)

    def restore(self):
        """Puts the state in the folder into history and model. Returns the state of random numbers, None if done."""
        return load_state(self._folder, self._model, self._history)


def save_state(folder, model, history):
    """Writes the state of a compiled model and its history by a `RunWriter`."""
    # After the last epoch no state is needed, and JAX may have donated the buffers of the optimizer.
    folder.save_state(history.get_state(), [] if history.is_done() else _training_state(model))


def load_state(folder, model, history):
    """Puts the state in a `RunFolder` into history and model. Returns the state of random numbers, None if done."""
    progress, arrays = folder.read_state()
    history.set_state(progress)
    if history.is_done():
        return None
    try:
        return _restore_state(model, arrays)
    except ValueError as error:
        raise ValueError(f"{folder.path}: {error}") from None


def _training_state(model):
    """A list of arrays: the variables of a compiled model and its optimizer, then the state of random numbers."""
    return [*(ops.convert_to_numpy(variable) for variable in _variables(model)), random_state()]


def _restore_state(model, arrays):
    """Assigns to a compiled model the variables in what `_training_state` returned.

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

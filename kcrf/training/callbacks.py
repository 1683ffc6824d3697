"""The callbacks of training a tagger: the best weights are kept, and all that going on takes; Ctrl-C is heeded."""

import math
import signal
import threading
import time

from kcrf.backend import keras, ops, random_state, set_random_state

__all__ = ["Averages", "Interruption", "Keeper"]


class Averages(keras.callbacks.SwapEMAWeights):
    """Puts the averaged weights into the model between epochs.

    Args:
        resumed: Whether training begins with the averages in the model, as the state of an interrupted run has them.
    """

    def __init__(self, resumed=False):
        super().__init__(swap_on_epoch=True)
        self._ema_weights_in_model = resumed


class Interruption(keras.callbacks.Callback):
    """Ends training where the user pressed Ctrl-C, also where the `KeyboardInterrupt` met a bare `except:` of Keras.

    A callback of `fit`, and the context around it and what prepares it. Python hands signals to its main thread only.
    """

    def __init__(self):
        super().__init__()
        self._came = False

    def __enter__(self):
        unheeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        self._heeds = unheeded and threading.current_thread() is threading.main_thread()
        if self._heeds:
            signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, kind, error, trace):
        if self._heeds:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._came and kind is not KeyboardInterrupt:
            raise KeyboardInterrupt from error

    def _interrupt(self, number, frame):
        self._came = True
        raise KeyboardInterrupt

    def on_train_batch_begin(self, batch, logs=None):
        if self._came:
            raise KeyboardInterrupt


class Keeper(keras.callbacks.Callback):
    """Draws each epoch's batches; after it scores the held-out part, and keeps the best weights, log and state.

    Args:
        tagger: The `Tagger` around the model.
        valid: List of `Sentence`s to choose the best epoch by.
        folder: The `RunFolder`.
        batches: The `Batches` that are fitted.
        settings: `Settings`.
        report: Called after each epoch with its row of the log, a dict.
    """

    def __init__(self, tagger, valid, folder, batches, settings, report):
        super().__init__()
        self._tagger, self._valid, self._folder, self._batches = tagger, valid, folder, batches
        self._settings, self._report = settings, report
        self._rows, self._transitions, self._seconds_before = [], [], 0.0
        self._random = None  # the random numbers to go on with

    def on_train_begin(self, logs=None):
        self._began = time.perf_counter()

    def on_epoch_begin(self, epoch, logs=None):
        self._batches.draw(epoch)
        if self._random is not None:  # only now: on its way here, `fit` has drawn from them
            set_random_state(self._random)
            self._random = None

    def on_epoch_end(self, epoch, logs=None):
        if not math.isfinite(logs["loss"]):
            raise ValueError(
                f"Training needs a loss that is a number. Received: {logs['loss']} in epoch {epoch + 1}; a lower "
                "learning rate, or more warmup, keeps it from diverging"
            )
        valid = self._tagger.scores(self._valid)["f"] or 0.0
        seconds = self._seconds_before + time.perf_counter() - self._began
        row = {"epoch": epoch + 1, "loss": float(logs["loss"]), "valid_f": valid, "seconds": round(seconds, 1)}
        row.update({name: float(value) for name, value in logs.items() if name not in row})
        best = max((earlier["valid_f"] for earlier in self._rows), default=0.0)
        self._rows.append(row)
        if valid > best or not best:  # where nothing is found yet, or nothing is to be found, the last one
            self._folder.save_weights(self._tagger.model)
        self._folder.save_log(self._rows)
        if self._tagger.crf is not None:
            matrix = ops.convert_to_numpy(self._tagger.crf.trans).astype(float).round(6).tolist()
            self._transitions.append([epoch + 1, matrix])
            self._folder.save_transitions(self._tagger.scheme, self._transitions)
        arrays = [] if self.is_done() else self._state()  # then no epoch needs them; on JAX some are shared and gone
        self._folder.save_state({"rows": self._rows, "transitions": self._transitions}, arrays)
        self._report(row)
        self.model.stop_training = self.is_done()

    def is_done(self):
        """Whether all epochs are over, or `patience` of them since the best one."""
        best = max(self._rows, key=lambda row: row["valid_f"], default=None)
        patience = self._settings.patience
        waited = patience is not None and best is not None and len(self._rows) - best["epoch"] >= patience
        return len(self._rows) >= self._settings.epochs or waited

    def _state(self):
        """Everything that changes in training, as arrays."""
        return [*(ops.convert_to_numpy(variable) for variable in _variables(self.model)), random_state()]

    def restore(self, model):
        """Puts the state in the folder into a compiled model; returns how many epochs are over."""
        progress, arrays = self._folder.read_state()
        self._rows, self._transitions = progress["rows"], progress["transitions"]
        self._seconds_before = self._rows[-1]["seconds"]
        if self.is_done():
            return len(self._rows)
        *values, self._random = arrays
        model.optimizer.build(model.trainable_variables)
        variables = _variables(model)
        shapes = [tuple(variable.shape) for variable in variables]
        if shapes != [value.shape for value in values]:
            raise ValueError(
                f"{self._folder.path}: the state of training must have the {len(shapes)} arrays of this model. "
                f"Received: {len(values)}, or others"
            )
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
        return len(self._rows)


def _variables(model):
    """The variables of a model, those that Keras' seeds count in included, and of its optimizer."""
    metrics = {id(variable) for variable in model.metrics_variables}
    return [v for v in (*model.variables, *model.optimizer.variables) if id(v) not in metrics]

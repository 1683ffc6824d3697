"""Callbacks of training a tagger: the batches of each epoch, its scores, averaged weights, Ctrl-C."""

import math
import signal
import threading
import time

from kcrf.backend import keras, ops, set_random_state
from kcrf.runs import DivergedError

__all__ = ["Averages", "EpochBatches", "EpochScores", "Interruption"]


class Averages(keras.callbacks.SwapEMAWeights):
    """Puts the averaged weights into the model between epochs.

    Args:
        resumed: Whether the model has the averages when training begins, as that of a resumed run. Defaults to False.
    """

    def __init__(self, resumed=False):
        super().__init__(swap_on_epoch=True)
        self._ema_weights_in_model = resumed


class Interruption(keras.callbacks.Callback):
    """Ends training when the user presses Ctrl-C, even if a bare `except:` in Keras swallows the `KeyboardInterrupt`.

    Used both as a callback of `fit` and as the context around it. A handler that the user has set stays in force, and
    in other threads than the main one, which get no signals, this does nothing.
    """

    def __init__(self):
        super().__init__()
        self._pressed = False

    def __enter__(self):
        is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        self._handles = is_default and threading.current_thread() is threading.main_thread()
        if self._handles:
            signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, kind, error, trace):
        if self._handles:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._pressed and kind is not KeyboardInterrupt:
            raise KeyboardInterrupt from error

    def _interrupt(self, number, frame):
        self._pressed = True
        raise KeyboardInterrupt

    def on_train_batch_begin(self, batch, logs=None):
        if self._pressed:
            raise KeyboardInterrupt


class EpochBatches(keras.callbacks.Callback):
    """Draws the batches of each epoch.

    Args:
        batches: The `Batches` that are fitted.
        random: The state of random numbers to go on with, for a run that is resumed. Defaults to None.
    """

    def __init__(self, batches, random=None):
        super().__init__()
        self._batches, self._random = batches, random

    def on_epoch_begin(self, epoch, logs=None):
        self._batches.draw(epoch)
        if self._random is not None:  # not earlier: `fit` itself draws random numbers before the first epoch
            set_random_state(self._random)
            self._random = None


class EpochScores(keras.callbacks.Callback):
    """Scores the held-out part after each epoch, notes the epoch in a history, and stops training when that is done.

    Args:
        tagger: The `Tagger` or `Classifier` around the model.
        valid: List of `Sentence`s or `Example`s, the held-out part.
        history: The `TrainingHistory`.
        on_epoch: Called after each epoch as `on_epoch(row, is_best)`, with the epoch's row of the history and whether
            its weights are to be kept.
    """

    def __init__(self, tagger, valid, history, on_epoch):
        super().__init__()
        self._tagger, self._valid, self._history, self._on_epoch = tagger, valid, history, on_epoch

    def on_train_begin(self, logs=None):
        self._start = time.perf_counter() - self._history.seconds()

    def on_epoch_end(self, epoch, logs=None):
        row = self._describe(epoch, logs)
        is_best = self._history.add(row, self._transitions())
        self._on_epoch(row, is_best)
        self.model.stop_training = self._history.is_done()

    def _describe(self, epoch, logs):
        """The row of an epoch, a dict of numbers."""
        loss = float(logs["loss"])
        if not math.isfinite(loss):
            raise DivergedError(
                f"Training needs a finite loss. Received: {loss} in epoch {epoch + 1}; use a lower learning rate, or "
                "more warmup"
            )
        valid = self._tagger.scores(self._valid)[self._tagger.metric] or 0.0
        seconds = round(time.perf_counter() - self._start, 1)
        row = {"epoch": epoch + 1, "loss": loss, f"valid_{self._tagger.metric}": valid, "seconds": seconds}
        return {**row, **{name: float(value) for name, value in logs.items() if name not in row}}

    def _transitions(self):
        """The transitions of the CRF as nested lists, or None."""
        if self._tagger.crf is None:
            return None
        return ops.convert_to_numpy(self._tagger.crf.trans).astype(float).round(6).tolist()

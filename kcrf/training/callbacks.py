"""Callbacks of training: draw the batches of an epoch, end an epoch, handle Ctrl-C."""

import signal
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from kcrf.backend import keras, ops, set_random_state
from kcrf.runs import RunWriter
from kcrf.runs.formats import log_text, transitions_text
from kcrf.runs.names import LOG, TRANSITIONS
from kcrf.training.history import Row, TrainingHistory, check_loss, validation_scores
from kcrf.training.linear_part import MARGIN, LinearPart
from kcrf.training.state import load_state, save_state


class Interruption(keras.callbacks.Callback):
    """Ends training when the user presses Ctrl-C, even if a bare `except:` in Keras swallows the `KeyboardInterrupt`.
    Use it both as a callback of `fit` and as the context around `fit`. It does nothing if the user has set another
    signal handler, or outside of the main thread, which alone receives signals."""

    def __init__(self) -> None:
        super().__init__()
        self._pressed = False

    def __enter__(self) -> "Interruption":
        is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        self._handles = is_default and threading.current_thread() is threading.main_thread()
        if self._handles:
            signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self._handles:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._pressed and kind is not KeyboardInterrupt:
            raise KeyboardInterrupt from error

    def _interrupt(self, number: int, frame: Any) -> None:
        self._pressed = True
        raise KeyboardInterrupt

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if self._pressed:
            raise KeyboardInterrupt


class EpochBatches(keras.callbacks.Callback):
    """Draws the batches of each epoch. Before the first one, `random` becomes the state of the random generator."""

    def __init__(self, batches: Any, random: Any = None) -> None:
        super().__init__()
        self._batches, self.random = batches, random

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._batches.draw(epoch)
        if self.random is not None:  # not earlier: `fit` itself draws random numbers before the first epoch
            set_random_state(self.random)
            self.random = None


class Epochs(keras.callbacks.SwapEMAWeights):
    """Ends each epoch of a run: averages the weights, scores, records, saves and reports, in this order."""

    def __init__(
        self,
        tagger: Any,
        valid: list[Any],
        history: TrainingHistory,
        folder: RunWriter,
        batches: EpochBatches,
        monitors: list[Any],
        report: Any,
        averages: bool,
        linear_part: LinearPart,
        state: Sequence[np.ndarray],
    ) -> None:
        super().__init__(swap_on_epoch=averages)
        self._tagger, self._valid, self._history, self._folder = tagger, valid, history, folder
        self._batches, self._monitors, self._report, self._linear_part = batches, monitors, report, linear_part
        self._ema_weights_in_model, self._state = bool(history.rows), state

    def set_model(self, model: Any) -> None:
        super().set_model(model)
        for monitor in self._monitors:
            monitor.set_model(model)

    def set_params(self, params: Any) -> None:
        super().set_params(params)
        for monitor in self._monitors:
            monitor.set_params(params)

    def on_train_begin(self, logs: Any = None) -> None:
        self._begin_monitors()  # they measure changes from the initial values
        if self._state:
            self._batches.random = load_state(self._folder.path, self._state, self.model)
            self._state = ()
            self._begin_monitors()  # they count updates from here
        self._start = time.perf_counter() - self._history.seconds()

    def _begin_monitors(self) -> None:
        for monitor in self._monitors:
            monitor.on_train_begin()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_end(epoch, logs)  # averages
        for monitor in self._monitors:
            monitor.on_epoch_end(epoch, logs)
        weight, record, is_last = self._best_scored(epoch, logs)
        with self._linear_part.averaged(self.model, weight):
            transitions = {standard: ops.convert_to_numpy(crf.trans) for standard, crf in self._tagger.crfs.items()}
            is_best = self._history.add(record, transitions, is_last)
            self._save(is_best)
        save_state(self._folder, self.model, self._history)
        if self._report:
            self._report(record)
        self.model.stop_training = self._history.is_done()

    def _best_scored(self, epoch: int, logs: Any) -> tuple[float, Row, bool]:
        """The best weight of the linear part, the row of the epoch with it, and whether the epoch is the last."""
        score, history = f"valid_{self._tagger.metric}", self._history
        records = {weight: self._scored(epoch, logs, weight) for weight in self._linear_part.weights}
        weight = max(records, key=lambda weight: records[weight][score])
        is_last = history.ends_with(records[weight])
        if is_last and self._linear_part.may_stand_alone:
            alone = self._scored(epoch, logs, 1.0)
            if alone[score] > max(row[score] for row in [*history.rows, records[weight]]) + MARGIN:
                weight, records[1.0] = 1.0, alone
        return weight, {**records[weight], **({"linear_weight": weight} if len(records) > 1 else {})}, is_last

    def _scored(self, epoch: int, logs: Any, weight: float) -> Row:
        """The row of an epoch, a dict of numbers, with this weight of the linear part."""
        loss = float(logs["loss"])
        check_loss(loss, epoch + 1)
        with self._linear_part.averaged(self.model, weight):
            valid = validation_scores(self._tagger, self._valid)
        record = {"epoch": epoch + 1, "loss": loss, **valid, "seconds": round(time.perf_counter() - self._start, 1)}
        return {**record, **{name: float(value) for name, value in logs.items() if name not in record}}

    def _save(self, is_best: bool) -> None:
        """Writes the log, the transitions and, if they are the best, the weights."""
        if is_best:
            self._folder.save_weights(self._tagger.model)
        self._folder.save_text(LOG, log_text(self._history.rows))
        if self._history.transitions:
            self._folder.save_text(TRANSITIONS, transitions_text(self._tagger.scheme, self._history.transitions))

"""Shows the progress of training on standard error: a bar on a terminal, else a line for each epoch."""

from kcrf.backend import keras
from kcrf.progress_bars import bar, print_note


class TrainingProgress(keras.callbacks.Callback):
    """A progress bar over all batches of a run, with the loss and the validation score: `train_tagger(progress=...)`.

    Args:
        title: The name of the run, shown first in every line.
    """

    def __init__(self, title):
        super().__init__()
        self._title, self._bar, self._task, self._done = title, bar(), None, 0

    def on_train_begin(self, logs=None):
        total = self.params["epochs"] * self.params["steps"]
        self._task = self._bar.add_task(f"{self._title}: compiling", total=total)
        self._bar.start()

    def on_epoch_begin(self, epoch, logs=None):
        self._done = epoch * self.params["steps"]  # not 0 in a resumed run

    def on_train_batch_end(self, batch, logs=None):
        self._done += 1
        if self._done % 5 == 0:
            self._bar.update(self._task, completed=self._done)

    def report(self, record):
        """Shows an epoch: a dict with epoch or step, loss, seconds and a validation score such as valid_f."""
        name = next(name for name in record if name.startswith("valid_"))
        title = "F" if name == "valid_f" else name.removeprefix("valid_").replace("_", " ")
        when = f"step {record['step']:,}" if "step" in record else f"epoch {record['epoch']}"
        text = f"{self._title}: {when}, loss {record['loss']:.3f}, held-out {title} {record[name]:.4f}"
        self._bar.update(self._task, description=text, completed=self._done)
        if self._bar.disable:
            print_note(f"{text}, {record['seconds']:.0f} s")

    def on_train_end(self, logs=None):
        if self._task is not None:
            self._bar.update(self._task, completed=self._done)
        self._bar.stop()


def fit_with_progress(model, batches, epochs, done, callbacks, progress, validation_data=None):
    """Fits a model on batches in their order. Ends the display of progress even after an error.

    Args:
        model: The compiled model.
        batches: A `keras.utils.PyDataset`.
        epochs: The number of epochs, including completed ones.
        done: The number of completed epochs.
        callbacks: List of callbacks, `progress` among them.
        progress: The callback that shows progress, or None.
        validation_data: As for `fit`. Defaults to None.
    """
    options = {"validation_data": validation_data, "callbacks": callbacks, "verbose": 0, "shuffle": False}
    try:
        model.fit(batches, epochs=epochs, initial_epoch=done, **options)
    except BaseException:
        if progress:
            progress.on_train_end()  # Keras calls it only without an error; a progress bar must restore the cursor
        raise

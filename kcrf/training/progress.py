"""Shows the progress of training: a bar on a terminal, a bar and curves in a notebook, else a line for each epoch."""

import time
from html import escape
from typing import Any

from kcrf.backend import keras
from kcrf.progress_bars import bar, is_notebook, is_watched, print_note
from kcrf.reports.charts import curves
from kcrf.taggers.notebook import in_style

_PAUSE = 0.3  # seconds between two updates of a cell


class _Cell:
    """A progress bar in the cell of a notebook, above the curves of the epochs. It has the methods of rich."""

    disable = False

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._text, self._done, self._total, self._shown = "", 0, 1, 0.0
        self._handle: Any = None

    def add_task(self, description: str, total: int) -> None:
        self._text, self._total = description, total

    def start(self) -> None:
        from IPython.display import HTML, display

        self._html, self._handle = HTML, display(HTML(self._content()), display_id=True)

    def update(self, task: None, completed: int, description: str | None = None) -> None:
        self._text, self._done = description or self._text, completed
        if time.monotonic() - self._shown > _PAUSE:
            self.stop()

    def stop(self) -> None:
        if self._handle:
            self._shown = time.monotonic()
            self._handle.update(self._html(self._content()))

    def _content(self) -> str:
        bar = f'<progress max="{self._total}" value="{self._done}"></progress> {escape(self._text)}'
        return in_style(f'<div class="kcrf">{bar}{curves(self.rows)}</div>')


def progress_of(progress: Any) -> Any:
    """The callback that shows progress, or None. If `progress` is None, only where a person watches."""
    if progress is None:
        return TrainingProgress("training") if is_watched() else None
    return progress or None


class TrainingProgress(keras.callbacks.Callback):
    """A progress bar over all batches of a run, for `train_tagger(progress=...)`."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title, self._done = title, 0
        self._bar: Any = _Cell() if is_notebook() else bar()
        self._task: Any = None

    def on_train_begin(self, logs: Any = None) -> None:
        total = self.params["epochs"] * self.params["steps"]
        state = "starting" if "unit" in self.params else "compiling"
        self._task = self._bar.add_task(f"{self._title}: {state}", total=total)
        self._bar.start()

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._done = epoch * self.params["steps"]  # not 0 in a resumed run

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._done += 1
        if self._done % 5 == 0:
            unit, loss = self.params.get("unit", "step"), (logs or {}).get("loss")
            text = None if loss is None else f"{self._title}: {unit} {self._done:,}, loss {float(loss):.3f}"
            self._bar.update(self._task, completed=self._done, description=text)

    def report(self, record: dict[str, Any]) -> None:
        """Shows an epoch: a dict with epoch or step, loss, seconds and a validation score such as valid_f."""
        name = next(name for name in record if name.startswith("valid_"))
        title = "F" if name == "valid_f" else name.removeprefix("valid_").replace("_", " ")
        when = f"step {record['step']:,}" if "step" in record else f"epoch {record['epoch']}"
        text = f"{self._title}: {when}, loss {record['loss']:.3f}, held-out {title} {record[name]:.4f}"
        if isinstance(self._bar, _Cell):
            self._bar.rows.append(record)
        self._bar.update(self._task, description=text, completed=self._done)
        if self._bar.disable:
            print_note(f"{text}, {record['seconds']:.0f} s")

    def on_train_end(self, logs: Any = None) -> None:
        if self._task is not None:
            self._bar.update(self._task, completed=self._done)
        self._bar.stop()


def fit_with_progress(
    model: Any, batches: Any, epochs: int, done: int, callbacks: list[Any], progress: Any, validation_data: Any = None
) -> Any:
    """Fits a model on batches in their order, and returns its `History`. Ends the display of progress even after an
    error."""
    options = {"validation_data": validation_data, "callbacks": callbacks, "verbose": 0, "shuffle": False}
    try:
        return model.fit(batches, epochs=epochs, initial_epoch=done, **options)
    except BaseException:
        if progress:
            progress.on_train_end()  # Keras calls it only without an error; a progress bar must restore the cursor
        raise

"""The epochs of a training run: which one is the best, and whether training is over. Has no model and no files."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from kcrf.runs.errors import DivergedError

Row = dict[str, Any]


class TrainingHistory:
    """The epochs of a run. The best epoch has the highest score or, with `least`, the lowest score.

    Epochs before the last score of 0 do not count towards patience: an untrained model finds something by chance, and
    then learns to find nothing. Training still stops after `2 * patience` epochs without a new best.

    Attributes:
        rows: A dict for each epoch, with `epoch`, counted from 1, `loss`, the score, `seconds` since training began,
            and what other callbacks logged.
        transitions: For each epoch `[epoch, matrix]`, the matrix as nested lists. With several segmentation standards,
            `[epoch, matrix, standard]` for each. Empty without a CRF.

    >>> history = TrainingHistory(epochs=5, patience=1)
    >>> [history.add({"epoch": epoch, "valid_f": f}) for epoch, f in [(1, 0.5), (2, 0.7), (3, 0.6)]]
    [True, True, False]
    >>> history.is_done()
    True
    """

    def __init__(self, epochs: int, patience: int | None = None, score: str = "valid_f", least: bool = False) -> None:
        self._epochs, self._patience, self._score, self._sign = epochs, patience, score, -1 if least else 1
        self.rows, self.transitions, self._is_over = [], [], False

    def add(self, record: Row, transitions: Mapping[str | None, Any] | None = None, is_last: bool = False) -> bool:
        """Adds an epoch. Returns whether to keep its weights: it is the best so far, or all scores so far are 0."""
        before = self._best(self.rows)
        self.rows.append(record)
        self._is_over = is_last
        for standard, matrix in (transitions or {}).items():
            rounded = matrix.astype(float).round(6).tolist()
            self.transitions.append([record["epoch"], rounded, *([] if standard is None else [standard])])
        found_nothing = before is not None and self._found_nothing(before)
        return before is None or found_nothing and record[self._score] >= 0 or record is self._best(self.rows)

    def is_done(self) -> bool:
        """Whether all epochs are over, or the run stops early."""
        return self._is_over or self._is_done(self.rows)

    def ends_with(self, record: Row) -> bool:
        """Whether training would be over after one more epoch, whose row is a dict as in `rows`."""
        return self._is_done([*self.rows, record])

    def _is_done(self, rows: Sequence[Row]) -> bool:
        return len(rows) >= self._epochs or self._patience is not None and self._waits(rows, self._patience)

    def _waits(self, rows: Sequence[Row], patience: int) -> bool:
        """Whether too many epochs have passed since the best one."""
        start = max((number for number, row in enumerate(rows, 1) if self._found_nothing(row)), default=0)
        best, best_since = self._best(rows), self._best(rows[start:])
        waited = len(rows) - best["epoch"] if best and not self._found_nothing(best) else 0
        waited_since = len(rows) - best_since["epoch"] if best_since else 0
        return waited_since >= patience or waited >= 2 * patience

    def _found_nothing(self, record: Row) -> bool:
        """Whether an epoch has the score 0; a loss of 0 is the best."""
        return self._sign > 0 and not record[self._score]

    def seconds(self) -> float:
        """The seconds from the start of training to the end of the last epoch."""
        return self.rows[-1]["seconds"] if self.rows else 0.0

    def best(self) -> Row:
        """The row of the epoch whose weights are kept, of at least one."""
        best = self._best(self.rows)
        return self.rows[-1] if best is None or self._found_nothing(best) else best

    def _best(self, rows: Sequence[Row]) -> Row | None:
        """The row of the first of the best epochs, or None."""
        return max(rows, key=lambda record: self._sign * record[self._score], default=None)

    def get_state(self) -> dict[str, Any]:
        """Plain values for `set_state`."""
        return {"rows": self.rows, "transitions": self.transitions, "is_over": self._is_over}

    def set_state(self, state: dict[str, Any], is_over: bool = False) -> None:
        """Restores the epochs of an interrupted run."""
        self.rows, self.transitions = state["rows"], state["transitions"]
        self._is_over = is_over or state["is_over"]


def check_loss(loss: float, epoch: int, advice: str = "use a lower learning rate, or more warmup") -> None:
    """Raises a `DivergedError` with an advice if the loss of an epoch, counted from 1, is not finite."""
    if not math.isfinite(loss):
        raise DivergedError(f"Training needs a finite loss. Received: {loss} in epoch {epoch}; {advice}")


def validation_scores(tagger: Any, valid: list[Any]) -> Row:
    """The scores of an epoch for its row: first the one that chooses the best epoch, then one for each standard."""
    scores, metric = tagger.scores(valid), tagger.metric
    by_standard = {f"valid_{metric}_{name}": own[metric] for name, own in scores.get("standards", {}).items()}
    return {name: value or 0.0 for name, value in {f"valid_{metric}": scores[metric], **by_standard}.items()}

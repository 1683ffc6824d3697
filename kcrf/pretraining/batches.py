"""Batches of windows with masked tokens, for pretraining."""

import math
from typing import Any

import numpy as np

from kcrf.backend import keras
from kcrf.pretraining.masking import choose_positions, hide
from kcrf.pretraining.model import POSITIONS
from kcrf.pretraining.vocabulary import SPECIAL_TOKENS
from kcrf.pretraining.windows import Windows
from kcrf.runs.pretraining import PretrainingSettings


class MaskedBatches(keras.utils.PyDataset):
    """The batches of a round, which is a fixed number of steps.

    Each pass over the windows has a new order. Order and masks depend only on the seed and the number of the pass, so
    resumed training gets the same batches.
    """

    def __init__(
        self,
        windows: Windows,
        numbers: np.ndarray,
        settings: PretrainingSettings,
        vocabulary: dict[str, int],
        steps: int | None = None,
        segments: bool = True,
    ) -> None:
        super().__init__()
        self._windows, self._numbers, self._settings = windows, numbers, settings
        self._is_held_out, self._segments = steps is None, segments
        self._steps = math.ceil(len(numbers) / settings.batch_size) if steps is None else steps
        self._mask_id = vocabulary["[MASK]"]
        special = [vocabulary[token] for token in SPECIAL_TOKENS]
        self._is_ordinary = np.ones(max(vocabulary.values()) + 1, bool)
        self._is_ordinary[special] = False
        self._ordinary = np.flatnonzero(self._is_ordinary)
        self._count = max(1, round(settings.rate * (settings.length - 1)))
        self._round, self._order = 0, {}

    def __len__(self) -> int:
        return self._steps

    def draw(self, number: int) -> None:
        """Starts a round, counted from 0."""
        self._round = number

    def __getitem__(self, step: int) -> Any:
        """`(inputs, targets, weights)`: a dict of integer arrays; integers and floats `(batch, predictions)`."""
        size = self._settings.batch_size
        if self._is_held_out:
            draws = range(step * size, min((step + 1) * size, len(self._numbers)))
        else:
            first = (self._round * self._steps + step) * size
            draws = range(first, first + size)
        rows = [self._row(draw) for draw in draws]
        shown, positions, targets, weights = map(np.stack, zip(*rows))
        inputs = {"Input-Token": shown, POSITIONS: positions}
        inputs |= {"Input-Segment": np.zeros_like(shown)} if self._segments else {}
        return inputs, targets, weights

    def _row(self, draw: int) -> tuple[np.ndarray, ...]:
        """The n-th window of the order: its masked tokens, positions, targets and weights."""
        number = int(self._numbers[draw]) if self._is_held_out else self._number(draw)
        is_static = self._settings.static or self._is_held_out
        random = np.random.default_rng([self._settings.seed, number, *([] if is_static else [draw])])
        ids, starts, importance = self._windows[number]
        chosen, groups = choose_positions(
            self._is_ordinary[ids], starts, self._count, self._settings.mask, random, importance
        )
        shown = hide(ids, chosen, groups, self._mask_id, self._ordinary, random)
        missing = self._count - len(chosen)
        positions = np.pad(chosen, (0, missing)).astype("int32")
        weights = np.pad(np.ones(len(chosen), "float32"), (0, missing))
        return shown, positions, ids[positions], weights

    def _number(self, draw: int) -> int:
        turn, place = divmod(draw, len(self._numbers))
        if turn not in self._order:
            order = np.random.default_rng([self._settings.seed, turn]).permutation(self._numbers)
            self._order = {turn: order, **{t: o for t, o in self._order.items() if t == turn - 1}}
        return int(self._order[turn][place])

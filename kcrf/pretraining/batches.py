"""A masked language model that computes scores only at the positions to predict, and its batches."""

import math
from typing import Any

import numpy as np

from kcrf.backend import keras, ops
from kcrf.layers.embeddings import SinusoidalPositions
from kcrf.pretraining.masking import choose_positions, hide
from kcrf.pretraining.windows import Windows
from kcrf.readers.pieces import EncoderReader
from kcrf.runs.pretraining import PretrainingSettings

POSITIONS = "Predicted-Position"


def masked_language_model(transformer: Any) -> Any:
    """Builds the model to train. Scoring a large vocabulary at every position takes longer than a small encoder."""
    layers, prefix = transformer.layers, transformer.config["prefix"]
    positions = keras.Input((None,), dtype="int32", name=POSITIONS)
    hidden = transformer.hidden_states[-1]  # (batch, time, hidden)
    x = ops.take_along_axis(hidden, positions[:, :, None], axis=1)  # (batch, predictions, hidden)
    x = layers[prefix + "MLM-Norm"](layers[prefix + "MLM-Dense"](x))
    x = layers[prefix + "MLM-Bias"](layers[prefix + "Embedding-Token"](x, reverse=True))
    scores = ops.cast(x, "float32")  # (batch, predictions, vocabulary)
    inputs = {tensor.name: tensor for tensor in transformer.inputs}
    return keras.Model({**inputs, POSITIONS: positions}, scores)


def start_positions(transformer: Any) -> None:
    """Initializes the position embeddings of a new model with sinusoids (https://arxiv.org/abs/1706.03762).

    Attention then learns to attend to neighbors much earlier than from random vectors.
    """
    embeddings = transformer.layers[transformer.config["prefix"] + "Embedding-Position"].embeddings
    waves = SinusoidalPositions(dtype="float32")(ops.zeros((1, *embeddings.shape)))  # their mean square is 1/2
    embeddings.assign(2**0.5 * transformer.config["initializer_range"] * waves)


class MaskedBatches(keras.utils.PyDataset):
    """The batches of a round, a fixed number of steps. Order and masks depend on the seed and the pass alone."""

    def __init__(
        self,
        windows: Windows,
        numbers: np.ndarray,
        settings: PretrainingSettings,
        reader: EncoderReader,
        steps: int | None = None,
    ) -> None:
        super().__init__()
        self._windows, self._numbers, self._settings = windows, numbers, settings
        self._is_held_out, self._segments = steps is None, reader.has_segments
        self._steps = math.ceil(len(numbers) / settings.batch_size) if steps is None else steps
        self._mask_id = reader.ids["mask"]
        self._is_ordinary = np.ones(reader.size, bool)
        self._is_ordinary[list(reader.ids.values())] = False
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
        ids, starts = self._windows[number]
        chosen, groups = choose_positions(self._is_ordinary[ids], starts, self._count, self._settings.mask, random)
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

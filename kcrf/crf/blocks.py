"""Recursions in blocks of time: fewer steps of a loop than the 2 time steps from left to right and back.

The blocks run in parallel, from every possible tag before the block, which gives a matrix from this tag to the last
one. The matrices give the state before each block, and each block runs again from its state. (https://arxiv.org/abs/
1905.13002 and 2102.05743, by Särkkä, Hassan and García-Fernández, join positions without blocks.) Matrices take `tags`
times the arithmetic of the loop: blocks are faster if a step costs more than its arithmetic (benchmarks/README.md), as

- without XLA: sqrt(time) blocks, and a loop over their matrices, 5 sqrt(time) steps;
- with XLA on an accelerator: blocks of 8 positions, whose matrices are joined in pairs, 24 + 2 log(time / 8) steps.
"""

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from kcrf.backend import TensorLike, loop_ops, loop_target, ops, scan, short_scan
from kcrf.crf.trellis import Trellis

# By `loop_target`: the positions from which blocks are faster than one loop, for sums and for the best path, and up to
# which batch * tags**3 they are, which all blocks compute in each step.
LIMITS: dict[str, tuple[dict[str, float], float]] = {
    "operations": ({"sum": 192, "max": 128}, 25_000),  # measured on a CPU, for torch; TensorFlow gains earlier
    "accelerator": ({"sum": 48, "max": 48}, 2_000_000),  # estimated: 9 µs a step, 1e9 sums in 3 ms
    "cpu": ({"sum": math.inf, "max": math.inf}, 0),
}
_POSITIONS = 8  # of a block on an accelerator
_USUAL_BATCH = 32  # instead of an unknown one
_LOWEST = -1e30  # instead of -inf, which must not be subtracted from -inf
_TINY = 1e-37


def number_of_blocks(trellis: Trellis, kind: str) -> int:
    """The number of blocks that is fastest for "sum" or "max"; 1, one loop, also in a graph of unknown length."""
    batch, time, tags = trellis.emissions.shape
    batch = _USUAL_BATCH if batch is None else batch
    if not isinstance(batch, int) or not isinstance(time, int):  # JAX exports a model: sizes may be symbols
        return 1
    target = loop_target()
    shortest, largest_step = LIMITS[target]
    if time < shortest[kind] or batch * tags**3 > largest_step:
        return 1
    return -(-time // _POSITIONS) if target == "accelerator" else round(math.sqrt(time))


class OneLoop:
    """One loop over all positions in each direction, with the methods of `SumBlocks`."""

    def forward(self, step: Callable[..., Any], first: TensorLike, inputs: Any) -> Any:
        return short_scan(step, first, inputs)

    def backward(self, step: Callable[..., Any], last: TensorLike, inputs: Any) -> Any:
        return short_scan(step, last, inputs, reverse=True)[1]


_Step: TypeAlias = Callable[[TensorLike, TensorLike], TensorLike]


class _Blocks:
    """Splits arrays `(time, ..., batch)` into blocks that divide the time: `(length, ..., blocks * batch)`."""

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks

    def _cut(self, x: TensorLike) -> TensorLike:
        return self._side_by_side(ops.reshape(x, (self.blocks, x.shape[0] // self.blocks, *x.shape[1:-1], -1)))

    def _join(self, x: TensorLike) -> TensorLike:
        return ops.reshape(self._by_block(x), (self.blocks * x.shape[0], *x.shape[1:-1], -1))

    def _side_by_side(self, x: TensorLike) -> TensorLike:
        x = ops.moveaxis(x, 0, -2)
        return ops.reshape(x, (*x.shape[:-2], -1))

    def _by_block(self, x: TensorLike) -> TensorLike:
        return ops.moveaxis(ops.reshape(x, (*x.shape[:-1], self.blocks, -1)), -2, 0)

    def _states(self, step: _Step, first: TensorLike, parts: TensorLike) -> TensorLike:
        """The states before each part; `step(state, part)` is the state after a part, whose first axis is a state's."""
        if loop_target() != "accelerator":
            return scan(lambda state, part: (step(state, part), state), first, parts)[1]
        first = first[None]
        return ops.concatenate([first, step(first, _joined(step, parts[:-1]))], axis=0)


class SumBlocks(_Blocks):
    """Blocks for sums over paths, whose states are probabilities.

    Matrices are logarithms, with the sums of their rows: a tag that cannot be reached before a block may be likelier
    than the others by a factor that overflows a float.
    """

    def forward(self, step: Callable[..., Any], first: TensorLike, inputs: Any) -> Any:
        """The last state and the outputs of a `scan`; the last output of a step is the sum that divides the state."""

        def through(state: TensorLike, matrix: TensorLike) -> TensorLike:
            return _centered(loop_ops.logsumexp(state[..., None, :] + matrix, axis=-3))

        rows = tuple(map(self._cut, inputs))
        matrices = self._by_block(self._matrices(step, rows))  # (blocks, from, to, batch)
        states = self._states(through, ops.log(first), matrices)  # (blocks, tags, batch)
        self.inverses = _normalized(states[:, :, None] + matrices)  # (blocks, from, to, batch), by Bayes' rule
        last, outputs = short_scan(step, self._side_by_side(_normalized(states)), rows)
        return self._by_block(last)[-1], tuple(map(self._join, outputs))

    def backward(self, step: Callable[..., Any], last: TensorLike, inputs: Any) -> Any:
        """The outputs of a `scan` from the right, from the posterior of the last position, after `forward`."""

        def through(tags: TensorLike, inverse: TensorLike) -> TensorLike:
            return loop_ops.sum(tags[..., None, :] * inverse, axis=-3)

        inverses = ops.flip(ops.swapaxes(self.inverses, 1, 2), 0)  # (blocks, to, from, batch), from the right
        states = ops.flip(self._states(through, last, inverses), 0)  # (blocks, tags, batch), at the end of each block
        rows = tuple(map(self._cut, inputs))
        return tuple(map(self._join, short_scan(step, self._side_by_side(states), rows, reverse=True)[1]))

    def _matrices(self, step: Callable[..., Any], rows: Any) -> TensorLike:
        """The logarithms of the blocks' matrices, each up to a constant, `(from, to, blocks * batch)`."""

        def run(state: TensorLike, row: Any) -> Any:
            state, outputs = step(state, row)
            return state, outputs[-1]

        ends, totals = short_scan(run, _certain(rows), rows)  # (from, to, columns), (length, from, 1, columns)
        totals = ops.where(totals > 0, totals, 0.0)  # they are NaN after a sum of 0
        totals = ops.log(totals) - ops.log(ops.max(totals, axis=1, keepdims=True))  # small sums have more digits
        return ops.where(totals[-1] > -math.inf, ops.log(ends) + ops.sum(totals, axis=0), -math.inf)


class MaxBlocks(_Blocks):
    """Blocks for the best path, whose states are scores up to a constant."""

    def forward(self, step: Callable[..., Any], output: Callable[..., Any], first: TensorLike, inputs: Any) -> Any:
        """The last state, and `output(state, row)` at each position. Steps subtract only what all `from` share."""

        def through(state: TensorLike, matrix: TensorLike) -> TensorLike:
            return _centered(loop_ops.max(state[..., None, :] + matrix, axis=-3))

        rows = tuple(map(self._cut, inputs))
        matrices, _ = short_scan(lambda state, row: (step(state, row), ()), ops.log(_certain(rows)), rows)
        states = self._states(through, first, self._by_block(matrices))  # (blocks, tags, batch)
        states = self._side_by_side(states)  # (tags, columns)
        last, outputs = short_scan(lambda state, row: (step(state, row), output(state, row)), states, rows)
        return self._by_block(last)[-1], self._join(outputs)

    def follow(self, pointers: TensorLike, last: TensorLike) -> TensorLike:
        """The tags `(time, batch)` of the path that ends with `last (batch,)`; `pointers` are `(time, tags, batch)`."""
        if loop_target() == "accelerator":
            return ops.flip(self._states(_look_up, last, ops.flip(pointers, 0)), 0)
        pointers = self._cut(pointers)  # (length, tags, columns)
        every = pointers[0] * 0 + ops.arange(pointers.shape[1], dtype=pointers.dtype)[:, None]  # (tags, columns)
        before, paths = _follow(pointers, every)  # (tags, columns), (length, tags, columns)
        _, ends = _follow(self._by_block(before), last[None])  # (blocks, 1, batch), the last tag of each block
        return self._join(ops.take_along_axis(paths, self._side_by_side(ends)[None], axis=1)[:, 0])


def _joined(step: _Step, parts: TensorLike) -> TensorLike:
    """Joins each part with all parts before it, in log(parts) rounds (Hillis and Steele 1986)."""
    reach = 1
    while reach < parts.shape[0]:
        parts = ops.concatenate([parts[:reach], step(parts[:-reach], parts[reach:, None])], axis=0)
        reach *= 2
    return parts


def _centered(scores: TensorLike) -> TensorLike:
    """Scores `(..., tags, batch)` whose largest is 0: for a state, or for each state or matrix of several."""
    rank = len(scores.shape)
    return scores - loop_ops.max(scores, axis=tuple(range(int(rank > 2), rank - 1)), keepdims=True)


def _look_up(tags: TensorLike, pointers: TensorLike) -> TensorLike:
    """The pointers `(..., tags, batch)` of tags `(..., batch)`."""
    return ops.take_along_axis(pointers, tags[..., None, :], axis=-2)[..., 0, :]


def _follow(pointers: TensorLike, last: TensorLike) -> tuple[TensorLike, TensorLike]:
    """The tags before the first position, `(paths, batch)`, and at each, if paths end with `last (paths, batch)`."""
    time, paths, columns = pointers.shape[0], last.shape[0], ops.shape(pointers)[2]
    offsets = ops.arange(columns, dtype=pointers.dtype)  # indices into flat rows: a look-up is one operation
    rows = ops.reshape(pointers * columns + offsets, (time, -1))
    first, states = scan(
        lambda at, row: (loop_ops.take(row, at, axis=0), at), ops.reshape(last * columns + offsets, (-1,)), rows, True
    )
    return ops.reshape(first // columns, (paths, columns)), ops.reshape(states // columns, (time, paths, columns))


def _certain(rows: Any) -> TensorLike:
    """The states with probability 1 for one tag, `(from, tags, batch)`; the first row is `(time, tags, batch)`."""
    return ops.eye(rows[0].shape[1])[:, :, None] + ops.zeros_like(rows[0][0, :1])


def _normalized(scores: TensorLike) -> TensorLike:
    """Probabilities that sum to 1 over axis 1, or are all 0 if every score is -inf."""
    shares = ops.exp(scores - ops.maximum(ops.max(scores, axis=1, keepdims=True), _LOWEST))
    return shares / ops.maximum(ops.sum(shares, axis=1, keepdims=True), _TINY)

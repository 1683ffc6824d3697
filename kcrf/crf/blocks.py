"""Recursions in blocks of time: for few tags, about 5 sqrt(time) steps of a loop instead of 2 time steps.

The positions are split into about sqrt(time) blocks, which run in parallel. First each block runs from every possible
tag before the block. The result is a matrix from the tag before the block to the tag at its end. A loop over these
matrices computes the state before each block. Then each block runs again from its state, like one loop over all
positions. The backward recursion is the same: a matrix for each block, a loop over them, and all blocks in parallel.
(Särkkä and García-Fernández 2019, https://arxiv.org/abs/1905.13002, and Hassan, Särkkä and García-Fernández 2021,
https://arxiv.org/abs/2102.05743, join blocks pairwise instead.)

The matrices take `tags` times the arithmetic of the loop, so blocks are faster only if a step of a loop costs more than
its arithmetic: on torch and in TensorFlow's graphs, but not if XLA compiles the loop (benchmarks/README.md).
"""

import math

from kcrf.backend import compiled_by_xla, loop_ops, ops, scan

# Measured on a CPU, for torch; TensorFlow gains from fewer positions on, too.
SHORTEST = {"sum": 192, "max": 128}  # number of positions from which blocks are faster
_LARGEST_STEP = 25_000  # batch * tags**3 up to which blocks are faster; a step computes sqrt(time) times this
_USUAL_BATCH = 32  # instead of an unknown one
_LOWEST = -1e30  # instead of -inf, which must not be subtracted from -inf
_TINY = 1e-37


def number_of_blocks(trellis, kind):
    """The number of blocks that is fastest for a trellis of this size; 1 is one loop over all positions.

    It is 1 in a graph of unknown length, because a graph with both recursions would take longer to trace.

    Args:
        trellis: The `Trellis`.
        kind: "sum" for `SumBlocks`, "max" for `MaxBlocks`.
    """
    batch, time, tags = trellis.emissions.shape
    if compiled_by_xla() or time is None:  # sizes may be symbols if JAX exports a model
        return 1
    is_faster = time >= SHORTEST[kind] and (batch or _USUAL_BATCH) * tags**3 <= _LARGEST_STEP
    return round(math.sqrt(time)) if is_faster else 1


class OneLoop:
    """One loop over all positions in each direction, with the methods of `SumBlocks`."""

    def forward(self, step, first, inputs):
        """The last state and the outputs of a `scan`."""
        return scan(step, first, inputs)

    def backward(self, step, last, inputs):
        """The outputs of a `scan` from the right."""
        return scan(step, last, inputs, reverse=True)[1]


class _Blocks:
    """Splits arrays `(time, ..., batch)` into blocks along the batch axis, `(length, ..., blocks * batch)`.

    Args:
        blocks: The number of blocks, which divides the time of all arrays.
    """

    def __init__(self, blocks):
        self.blocks = blocks

    def _cut(self, x):
        return self._side_by_side(ops.reshape(x, (self.blocks, x.shape[0] // self.blocks, *x.shape[1:-1], -1)))

    def _join(self, x):
        """Reshapes `(length, ..., blocks * batch)` to `(time, ..., batch)`."""
        return ops.reshape(self._by_block(x), (self.blocks * x.shape[0], *x.shape[1:-1], -1))

    def _side_by_side(self, x):
        """Reshapes `(blocks, ..., batch)` to `(..., blocks * batch)`."""
        x = ops.moveaxis(x, 0, -2)
        return ops.reshape(x, (*x.shape[:-2], -1))

    def _by_block(self, x):
        """Reshapes `(..., blocks * batch)` to `(blocks, ..., batch)`."""
        return ops.moveaxis(ops.reshape(x, (*x.shape[:-1], self.blocks, -1)), -2, 0)

    def _states(self, first, matrices):
        """The last state and the one before each block, as logarithms up to a constant, `(blocks, tags, batch)`.

        Args:
            first: The state before the first block, `(tags, batch)`.
            matrices: `(blocks, from, to, batch)`.
        """

        def through(state, matrix):
            reached = self._reduce(state[:, None] + matrix)  # (to, batch)
            return reached - loop_ops.max(reached, axis=0, keepdims=True), state

        return scan(through, first, matrices)[1]


class SumBlocks(_Blocks):
    """Blocks for sums over paths, whose states are probabilities.

    Matrices are logarithms, with the sums of their rows: a tag that cannot be reached before a block may be more
    probable than the others by a factor that overflows a float.
    """

    def _reduce(self, scores):
        return loop_ops.logsumexp(scores, axis=0)

    def forward(self, step, first, inputs):
        """The last state and the outputs of a `scan`.

        Args:
            step: The step of the recursion. It takes states `(tags, batch)` and `(from, tags, batch)`, divides the next
                state by its sum over the tags, and returns this sum as its last output. It may have other outputs.
            first: The first state, `(tags, batch)`.
            inputs: A tuple of arrays `(time, ..., batch)`.
        """
        rows = tuple(map(self._cut, inputs))
        matrices = self._by_block(self._matrices(step, rows))  # (blocks, from, to, batch)
        states = self._states(ops.log(first), matrices)  # (blocks, tags, batch)
        self.inverses = _normalized(states[:, :, None] + matrices)  # (blocks, from, to, batch), by Bayes' rule
        last, outputs = scan(step, self._side_by_side(_normalized(states)), rows)
        return self._by_block(last)[-1], tuple(map(self._join, outputs))

    def backward(self, step, last, inputs):
        """The outputs of a `scan` from the right, after `forward`.

        Args:
            step: The step from the posterior of one position to that of the position before, `(tags, batch)` each.
            last: The posterior of the last position, `(tags, batch)`.
            inputs: A tuple of arrays `(time, ..., batch)`.
        """

        def through(tags, inverse):
            return loop_ops.sum(inverse * tags, axis=1), tags

        _, states = scan(through, last, self.inverses, reverse=True)  # (blocks, tags, batch), at the end of each block
        rows = tuple(map(self._cut, inputs))
        return tuple(map(self._join, scan(step, self._side_by_side(states), rows, reverse=True)[1]))

    def _matrices(self, step, rows):
        """The logarithms of the blocks' matrices, each up to a constant, `(from, to, blocks * batch)`."""

        def run(state, row):
            state, outputs = step(state, row)
            return state, outputs[-1]

        ends, totals = scan(run, _certain(rows), rows)  # (from, to, columns), (length, from, 1, columns)
        totals = ops.where(totals > 0, totals, 0.0)  # they are NaN after a sum of 0
        totals = ops.log(totals) - ops.log(ops.max(totals, axis=1, keepdims=True))  # small sums have more digits
        return ops.where(totals[-1] > -math.inf, ops.log(ends) + ops.sum(totals, axis=0), -math.inf)


class MaxBlocks(_Blocks):
    """Blocks for the best path, whose states are scores up to a constant."""

    def _reduce(self, scores):
        return loop_ops.max(scores, axis=0)

    def forward(self, step, output, first, inputs):
        """The last state, and the output at each position.

        Args:
            step: The function from a state and a row of the inputs to the next state. It takes states `(tags, batch)`
                and `(from, tags, batch)`, and subtracts only values that are the same for all `from`.
            output: The function from a state `(tags, batch)` and a row of the inputs to an output `(..., batch)`.
            first: The first state, `(tags, batch)`.
            inputs: A tuple of arrays `(time, ..., batch)`.
        """
        rows = tuple(map(self._cut, inputs))
        matrices, _ = scan(lambda state, row: (step(state, row), ()), ops.log(_certain(rows)), rows)
        states = self._states(first, self._by_block(matrices))  # (blocks, tags, batch)
        states = self._side_by_side(states)  # (tags, columns)
        last, outputs = scan(lambda state, row: (step(state, row), output(state, row)), states, rows)
        return self._by_block(last)[-1], self._join(outputs)

    def follow(self, pointers, last):
        """The tags `(time, batch)` of the path that ends with the tags `last (batch,)`.

        Args:
            pointers: For each tag the preceding tag, `(time, tags, batch)`.
            last: `(batch,)`.
        """
        pointers = self._cut(pointers)  # (length, tags, columns)
        every = pointers[0] * 0 + ops.arange(pointers.shape[1], dtype=pointers.dtype)[:, None]  # (tags, columns)
        before, paths = _follow(pointers, every)  # (tags, columns), (length, tags, columns)
        _, ends = _follow(self._by_block(before), last[None])  # (blocks, 1, batch), the last tag of each block
        return self._join(ops.take_along_axis(paths, self._side_by_side(ends)[None], axis=1)[:, 0])


def _follow(pointers, last):
    """Follows `pointers (time, tags, batch)` from each tag of `last (paths, batch)` to the left.

    Returns:
        The tags before the first position, `(paths, batch)`, and the tags at each position, `(time, paths, batch)`.
    """
    time, paths, columns = pointers.shape[0], last.shape[0], ops.shape(pointers)[2]
    offsets = ops.arange(columns, dtype=pointers.dtype)  # indices into flat rows: a look-up is one operation
    rows = ops.reshape(pointers * columns + offsets, (time, -1))
    first, states = scan(
        lambda at, row: (loop_ops.take(row, at, axis=0), at), ops.reshape(last * columns + offsets, (-1,)), rows, True
    )
    return ops.reshape(first // columns, (paths, columns)), ops.reshape(states // columns, (time, paths, columns))


def _certain(rows):
    """The states with probability 1 for one tag, `(from, tags, batch)`; the first row is `(time, tags, batch)`."""
    return ops.eye(rows[0].shape[1])[:, :, None] + ops.zeros_like(rows[0][0, :1])


def _normalized(scores):
    """Probabilities that sum to 1 over axis 1, or are all 0 if every score is -inf."""
    shares = ops.exp(scores - ops.maximum(ops.max(scores, axis=1, keepdims=True), _LOWEST))
    return shares / ops.maximum(ops.sum(shares, axis=1, keepdims=True), _TINY)

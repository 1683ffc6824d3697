"""The recursions of a CRF as kernels in Triton, one program for each sentence. Called by `torch_kernels`.

The kernels compute in log space and float32, exact for scores of any size; log Z is summed in float64. The same inputs
give the same bits: the only atomic additions are counts of labels, whole numbers in the memory of one program.

Arrays, which must be contiguous:

    emissions (batch, time, size)    of any float type
    mask (batch, time)               uint8, 1 = real
    labels (batch, time)             numbers, negative = unknown
    scores (size + 2, size)          the transitions, from row to column; the starts; the ends
    memory (3, batch, time, size)    alpha before each step, and the logsumexp of the step: maximum, sum of exponentials

`BLOCK` is the number of tags, rounded up to a power of 2; the tags in excess have the score `_NO_TAG`. If a table of
transitions `(BLOCK, BLOCK)` does not fit into the registers of a program, `TILE` is smaller than `BLOCK`: each step
loads the table in parts of `TILE` columns or rows, and puts the results of the parts together in memory.
`tl.debug_barrier` separates writing memory from reading what other threads have written.
"""

import triton
import triton.language as tl

_NO_TAG = tl.constexpr(-1e30)  # finite, because -inf - -inf is NaN
_FORBIDDEN = tl.constexpr(-1e9)  # as `kcrf.crf.FORBIDDEN`


@triton.jit
def chain_counts(
    emissions, mask, labels, scores, value, counts, steps, memory, time, size,
    LABELED: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """log Z `value (batch,)` and the expected `counts (batch, time, size)`, `steps (batch, size + 2, size)`.

    `steps` has the rows of `scores`. If LABELED, the value is the log likelihood of `labels`, and the counts are the
    observed minus the expected ones: in both cases, they are the gradient of the value. They must be zeros before. For
    a label that is no tag, the value is NaN and the counts stay 0.
    """
    sentence = tl.program_id(0).to(tl.int64)
    layer = tl.num_programs(0).to(tl.int64) * time * size
    mask, labels, steps = mask + sentence * time, labels + sentence * time, steps + sentence * (size + 2) * size
    sentence_rows = sentence * time * size
    emissions, counts, memory = emissions + sentence_rows, counts + sentence_rows, memory + sentence_rows
    tags = tl.arange(0, BLOCK)
    first, last = _ends(mask, time, CHUNK)
    unknown, known, wrong = _kinds(labels, mask, time, size, LABELED, CHUNK)
    table = _table(scores, tags, tags, size, BLOCK == TILE)
    # Turn 0 is over all paths. If some labels are unknown, turn 1 is over the paths that have the known ones.
    rounds = tl.where((last >= 0) & (known > 0) & (wrong == 0), 1 + unknown, 0)
    total = tl.full((), 0.0, tl.float64)
    if LABELED:
        if (rounds > 0) & (unknown == 0):
            total += _count_path(emissions, mask, labels, scores, counts, steps, first, last, size)
            tl.debug_barrier()
    for turn in range(rounds):
        sign = 1.0 - 2.0 * LABELED * (turn == 0)
        alpha, log_z = _forward(
            emissions, mask, labels, scores, memory, table, first, last, size, layer, turn, BLOCK, TILE
        )
        closing = alpha + _row(scores + (size + 1) * size, tags, size)
        top = tl.max(closing)
        gamma = tl.exp(closing - top)
        share = tl.sum(gamma)
        total += sign * (log_z + top + tl.log(share))
        tl.debug_barrier()
        _backward(
            gamma / share, mask, scores, counts, steps, memory, table, first, last, size, layer, sign, BLOCK, TILE
        )
        tl.debug_barrier()
    tl.store(value + sentence, tl.where(wrong > 0, float("nan"), total.to(tl.float32)))


@triton.jit
def best_path(
    emissions, mask, scores, path, pointers, memory, time, size,
    BLOCK: tl.constexpr, TILE: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """The tags of the best path, `path (batch, time)` int32, which must be -1 before. Ties go to the smaller tag."""
    sentence = tl.program_id(0).to(tl.int64)
    mask, path, memory = mask + sentence * time, path + sentence * time, memory + sentence * size
    emissions, pointers = emissions + sentence * time * size, pointers + sentence * time * size
    tags = tl.arange(0, BLOCK)
    first, last = _ends(mask, time, CHUNK)
    table = _table(scores, tags, tags, size, BLOCK == TILE)
    alpha = _row(scores + size * size, tags, size)
    real, row = _position(emissions, mask, first, last, size, tags)
    for t in range(first, last + 1):
        next_real, next_row = _position(emissions, mask, t + 1, last, size, tags)
        if real:
            if t > first:
                alpha = _best_step(alpha, scores, pointers + t * size, memory, table, tags, size, BLOCK, TILE)
            alpha += row
            alpha -= tl.max(alpha)
        real, row = next_real, next_row
    tag = tl.argmax(alpha + _row(scores + (size + 1) * size, tags, size), 0)
    tl.debug_barrier()
    for back in range(first, last + 1):
        t = first + last - back
        if tl.load(mask + t) != 0:
            tl.store(path + t, tag)
            if t > first:
                tag = tl.load(pointers + t * size + tag).to(tl.int32)


@triton.jit
def _ends(mask, time, CHUNK: tl.constexpr):
    """The first and the last real position; `time` and -1 if there is none."""
    first, last = time, -1
    for begin in range(0, time, CHUNK):
        here = begin + tl.arange(0, CHUNK)
        real = tl.load(mask + here, mask=here < time, other=0) != 0
        first = tl.minimum(first, tl.min(tl.where(real, here, time)))
        last = tl.maximum(last, tl.max(tl.where(real, here, -1)))
    return first, last


@triton.jit
def _kinds(labels, mask, time, size, LABELED: tl.constexpr, CHUNK: tl.constexpr):
    """Whether labels of real positions are unknown, known, or no tags: 0 or 1 each."""
    unknown, known, wrong = 0, 1, 0
    if LABELED:
        known = 0
        for begin in range(0, time, CHUNK):
            here = begin + tl.arange(0, CHUNK)
            real = tl.load(mask + here, mask=here < time, other=0) != 0
            label = tl.load(labels + here, mask=here < time, other=0).to(tl.float32)
            unknown = tl.maximum(unknown, tl.max((real & (label < 0)).to(tl.int32)))
            known = tl.maximum(known, tl.max((real & (label >= 0)).to(tl.int32)))
            wrong = tl.maximum(wrong, tl.max((real & ((label >= size) | (label != tl.floor(label)))).to(tl.int32)))
    return unknown, known, wrong


@triton.jit
def _floored(x):
    """Scores as float32, at least FORBIDDEN. NaN stays NaN."""
    x = x.to(tl.float32)
    return tl.where(x < _FORBIDDEN, _FORBIDDEN, x)


@triton.jit
def _row(pointer, tags, size):
    """The scores of all tags, `(BLOCK,)`."""
    return tl.where(tags < size, _floored(tl.load(pointer + tags, mask=tags < size, other=0.0)), _NO_TAG)


@triton.jit
def _table(scores, rows, columns, size, IS_LOADED: tl.constexpr):
    """Transitions from `rows` to `columns`, `(rows, columns)`; something else if they are not loaded."""
    if IS_LOADED:
        inside = (rows < size)[:, None] & (columns < size)[None, :]
        loaded = tl.load(scores + rows[:, None] * size + columns[None, :], mask=inside, other=0.0)
        return tl.where(inside, _floored(loaded), _NO_TAG)
    else:
        return tl.zeros((1, 1), tl.float32)


@triton.jit
def _position(emissions, mask, t, last, size, tags):
    """Whether position `t` is real, and its emissions; after the last position, that one again."""
    t = tl.minimum(t, last)
    return tl.load(mask + t) != 0, _row(emissions + t * size, tags, size)


@triton.jit
def _count_path(emissions, mask, labels, scores, counts, steps, first, last, size):
    """Adds the labels to the counts, and returns their score."""
    score = tl.full((), 0.0, tl.float64)
    before = size * 1  # the row of the starts
    for t in range(first, last + 1):
        if tl.load(mask + t) != 0:
            label = tl.load(labels + t).to(tl.int32)
            score += _floored(tl.load(emissions + t * size + label))
            score += _floored(tl.load(scores + before * size + label))
            tl.atomic_add(counts + t * size + label, 1.0)
            tl.atomic_add(steps + before * size + label, 1.0)
            before = label
    score += _floored(tl.load(scores + (size + 1) * size + before))
    tl.atomic_add(steps + (size + 1) * size + before, 1.0)
    return score


@triton.jit
def _forward(
    emissions, mask, labels, scores, memory, table, first, last, size, layer, turn,
    BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """log alpha of the last position up to a constant, and the constant. Turn 1 keeps to the labels that are known."""
    tags = tl.arange(0, BLOCK)
    alpha = _row(scores + size * size, tags, size)
    log_z = tl.full((), 0.0, tl.float64)
    real, row = _position(emissions, mask, first, last, size, tags)
    for t in range(first, last + 1):
        next_real, next_row = _position(emissions, mask, t + 1, last, size, tags)  # loaded while this step computes
        if real:
            if turn > 0:
                label = tl.load(labels + t).to(tl.int32)
                row = tl.where((label >= 0) & (tags != label) & (tags < size), _FORBIDDEN, row)
            peak = tl.max(row)
            if t > first:
                tl.store(memory + t * size + tags, alpha, mask=tags < size)
                alpha = _sum_step(alpha, scores, memory + t * size, table, tags, size, layer, BLOCK, TILE)
            alpha += row - peak
            height = tl.max(alpha)
            alpha -= height
            log_z += peak.to(tl.float64) + height
        real, row = next_real, next_row
    return alpha, log_z


@triton.jit
def _sum_step(alpha, scores, memory, table, tags, size, layer, BLOCK: tl.constexpr, TILE: tl.constexpr):
    """The logsumexp over the tags before, `(BLOCK,)`, whose two parts go to the memory."""
    tops, sums = memory + layer, memory + 2 * layer
    if TILE == BLOCK:
        moved = alpha[:, None] + table  # (from, to)
        top = tl.max(moved, 0)
        total = tl.sum(tl.exp(moved - top[None, :]), 0)
        tl.store(tops + tags, top, mask=tags < size)
        tl.store(sums + tags, total, mask=tags < size)
    else:
        for begin in range(0, BLOCK, TILE):
            to = begin + tl.arange(0, TILE)
            moved = alpha[:, None] + _table(scores, tags, to, size, True)  # (from, TILE)
            some = tl.max(moved, 0)
            tl.store(tops + to, some, mask=to < size)
            tl.store(sums + to, tl.sum(tl.exp(moved - some[None, :]), 0), mask=to < size)
        tl.debug_barrier()
        top = tl.load(tops + tags, mask=tags < size, other=_NO_TAG)
        total = tl.load(sums + tags, mask=tags < size, other=1.0)
    return top + tl.log(total)


@triton.jit
def _backward(
    gamma, mask, scores, counts, steps, memory, table, first, last, size, layer, sign,
    BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Adds the posteriors of tags and transitions to the counts, times `sign`; `gamma` has those at `last`."""
    tags = tl.arange(0, BLOCK)
    inside = tags < size
    _add(steps + (size + 1) * size + tags, sign * gamma, inside)
    pairs = tl.zeros_like(table)
    for back in range(first, last + 1):
        t = first + last - back
        if tl.load(mask + t) != 0:
            _add(counts + t * size + tags, sign * gamma, inside)
            if t > first:
                here = memory + t * size
                top = tl.load(here + layer + tags, mask=inside, other=_NO_TAG)
                total = tl.load(here + 2 * layer + tags, mask=inside, other=1.0)
                ratio = gamma / (total * tl.sum(gamma))  # the sum is 1 but for rounding, which would add up
                if TILE == BLOCK:
                    alpha = tl.load(here + tags, mask=inside, other=_NO_TAG)
                    moved = tl.exp(alpha[:, None] + table - top[None, :]) * ratio[None, :]  # (from, to)
                    pairs += moved
                    gamma = tl.sum(moved, 1)
                else:
                    gamma = _tiled_step_back(ratio, top, scores, steps, here, tags, size, sign, BLOCK, TILE)
    _add(steps + size * size + tags, sign * gamma, inside)
    if TILE == BLOCK:
        _add(steps + tags[:, None] * size + tags[None, :], sign * pairs, inside[:, None] & inside[None, :])


@triton.jit
def _tiled_step_back(ratio, top, scores, steps, memory, tags, size, sign, BLOCK: tl.constexpr, TILE: tl.constexpr):
    """One step of `_backward` in parts of TILE rows. The memory of alpha is overwritten by the result."""
    for begin in range(0, BLOCK, TILE):
        rows = begin + tl.arange(0, TILE)
        alpha = tl.load(memory + rows, mask=rows < size, other=_NO_TAG)
        table = _table(scores, rows, tags, size, True)
        moved = tl.exp(alpha[:, None] + table - top[None, :]) * ratio[None, :]  # (TILE, to)
        inside = (rows < size)[:, None] & (tags < size)[None, :]
        _add(steps + rows[:, None] * size + tags[None, :], sign * moved, inside)
        tl.debug_barrier()
        tl.store(memory + rows, tl.sum(moved, 1), mask=rows < size)
    tl.debug_barrier()
    return tl.load(memory + tags, mask=tags < size, other=0.0)


@triton.jit
def _add(pointer, x, inside):
    tl.store(pointer, tl.load(pointer, mask=inside, other=0.0) + x, mask=inside)


@triton.jit
def _best_step(alpha, scores, pointers, memory, table, tags, size, BLOCK: tl.constexpr, TILE: tl.constexpr):
    """The best score of a path to each tag, `(BLOCK,)`; the tags before them go to `pointers`."""
    if TILE == BLOCK:
        best, before = tl.max(alpha[:, None] + table, 0, return_indices=True)
        tl.store(pointers + tags, before.to(tl.uint8), mask=tags < size)
    else:
        for begin in range(0, BLOCK, TILE):
            to = begin + tl.arange(0, TILE)
            some, before = tl.max(alpha[:, None] + _table(scores, tags, to, size, True), 0, return_indices=True)
            tl.store(pointers + to, before.to(tl.uint8), mask=to < size)
            tl.store(memory + to, some, mask=to < size)
        tl.debug_barrier()
        best = tl.load(memory + tags, mask=tags < size, other=_NO_TAG)
        tl.debug_barrier()
    return best

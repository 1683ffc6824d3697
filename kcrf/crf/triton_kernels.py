"""The recursions of a CRF as kernels in Triton, one program for each sentence. Called by `torch_kernels`.

The kernels compute in log space and float32, exact for scores of any size; log Z is summed in float64. The same inputs
give the same bits: the only atomic additions are counts of labels, whole numbers in the memory of one program.

Arrays, which must be contiguous; those that are written need no values before:

    emissions (batch, time, size)    of any float type
    mask (batch, time)               uint8, 1 = real
    labels (batch, time)             numbers, negative = unknown
    transitions (size, size)         from row to column
    start, end (size,)               or None, which are zeros
    memory (3, batch, time, size)    alpha before each step, the maximum and 1 / sum of its logsumexp; then `turned`

A step takes as long as a load: each loads what the next one needs. Many labels are counted at once. A thread has whole
columns of what a step sums: forward the scores to a tag, backward those from a tag.

`BLOCK` is the number of tags, rounded up to a power of 2; the tags in excess have the score `_NO_TAG`. If a table
`(BLOCK, BLOCK)` does not fit into the registers of a program, each step loads it in parts of `TILE` tags, whose results
meet in memory. `tl.debug_barrier` separates writing memory from reading what other threads have written.
"""

import triton
import triton.language as tl

_NO_TAG = tl.constexpr(-1e30)  # finite, because -inf - -inf is NaN
_FORBIDDEN = tl.constexpr(-1e9)  # as `kcrf.crf.FORBIDDEN`


@triton.jit
def chain_counts(
    emissions, mask, labels, transitions, start, end, value, counts, steps, memory, time, size,
    LABELED: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """log Z `value (batch,)` and the expected `counts (batch, time, size)`, `steps (batch, size + 2, size)`.

    The last two rows of `steps` are the first and the last tags. If LABELED, the value is the log likelihood of
    `labels`, and the counts are the observed minus the expected ones: in both cases, they are the gradient of the
    value. For a label that is no tag, the value is NaN and the counts are 0.
    """
    sentence = tl.program_id(0).to(tl.int64)
    layer = tl.num_programs(0).to(tl.int64) * time * size
    mask, labels, steps = mask + sentence * time, labels + sentence * time, steps + sentence * (size + 2) * size
    turned, sentence_rows = memory + 3 * layer + sentence * size * size, sentence * time * size
    emissions, counts, memory = emissions + sentence_rows, counts + sentence_rows, memory + sentence_rows
    tags = tl.arange(0, BLOCK)
    fill(counts, 0.0, time * size, CHUNK)
    fill(steps, 0.0, (size + 2) * size, CHUNK)
    first, last, unknown, known, wrong = _survey(labels, mask, time, size, LABELED, CHUNK)
    # Turn 0 is over all paths. If some labels are unknown, turn 1 is over the paths that have the known ones.
    rounds = tl.where((last >= 0) & (known > 0) & (wrong == 0), 1 + unknown, 0)
    total = tl.full((), 0.0, tl.float64)
    tl.debug_barrier()
    if LABELED:
        if (rounds > 0) & (unknown == 0):
            total += _count_path(emissions, mask, labels, transitions, start, end, counts, steps, last, size, CHUNK)
            tl.debug_barrier()
    for turn in range(rounds):
        sign = 1.0 - 2.0 * LABELED * (turn == 0)
        alpha, log_z = _forward(
            emissions, mask, labels, transitions, start, memory, first, last, size, layer, turn, BLOCK, TILE
        )
        closing = alpha + _row(end, tags, size)
        top = tl.max(closing)
        gamma = tl.exp(closing - top)
        share = tl.sum(gamma)
        total += sign * (log_z + top + tl.log(share))
        tl.debug_barrier()
        gamma /= share
        _backward(gamma, mask, transitions, counts, steps, memory, turned, first, last, size, layer, sign, BLOCK, TILE)
        tl.debug_barrier()
    tl.store(value + sentence, tl.where(wrong > 0, float("nan"), total.to(tl.float32)))


@triton.jit
def best_path(
    emissions, mask, transitions, start, end, path, pointers, memory, time, size,
    BLOCK: tl.constexpr, TILE: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """The tags of the best path, `path (batch, time)` int32, -1 where masked and where a score is NaN or infinite.

    Ties go to the smaller tag.
    """
    sentence = tl.program_id(0).to(tl.int64)
    mask, path, memory = mask + sentence * time, path + sentence * time, memory + sentence * size
    emissions, pointers = emissions + sentence * time * size, pointers + sentence * time * size
    tags = tl.arange(0, BLOCK)
    fill(path, -1, time, CHUNK)
    first, last, _, _, _ = _survey(mask, mask, time, size, False, CHUNK)
    table = _table(transitions, tags[:, None], tags[None, :], size) if TILE == BLOCK else 0.0
    alpha = _row(start, tags, size)
    are_numbers = (alpha < float("inf")) & (_row(end, tags, size) < float("inf"))  # (BLOCK,)
    for begin in tl.static_range(0, BLOCK, TILE):
        to = begin + tl.arange(0, TILE)
        moves = table if TILE == BLOCK else _table(transitions, tags[:, None], to[None, :], size)
        are_numbers &= tl.min(tl.where(moves < float("inf"), 1, 0), 1) > 0
    real, row = _position(emissions, mask, first, last, size, tags)
    for t in range(first, last + 1):
        next_real, next_row = _position(emissions, mask, t + 1, last, size, tags)
        if real:
            are_numbers &= row < float("inf")
            if t > first:
                alpha = _best_step(alpha, transitions, pointers + t * size, memory, table, tags, size, BLOCK, TILE)
            alpha += row
            top = tl.max(alpha)
            alpha -= tl.where(top < float("inf"), top, 0.0)
        real, row = next_real, next_row
    has_path = tl.min(are_numbers.to(tl.int32), 0) > 0
    tag = tl.argmax(alpha + _row(end, tags, size), 0)
    last = tl.where(has_path, last, first - 1)  # else nothing is stored
    tl.debug_barrier()
    for back in range(first, last + 1):
        t = first + last - back
        next_real = tl.load(mask + tl.maximum(t - 1, 0)) != 0
        if real:
            tl.store(path + t, tag)
            if t > first:
                tag = tl.load(pointers + t * size + tag).to(tl.int32)
        real = next_real


@triton.jit
def fill(pointer, value, length, CHUNK: tl.constexpr):
    for begin in range(0, length, CHUNK):
        here = begin + tl.arange(0, CHUNK)
        tl.store(pointer + here, tl.zeros_like(here) + value, mask=here < length)


@triton.jit
def _survey(labels, mask, time, size, LABELED: tl.constexpr, CHUNK: tl.constexpr):
    """The first and the last real position; whether labels of such are unknown, known, or no tags: 0 or 1 each."""
    first, last, unknown, known, wrong = time, -1, 0, 1 - LABELED, 0
    for begin in range(0, time, CHUNK):
        here = begin + tl.arange(0, CHUNK)
        real = tl.load(mask + here, mask=here < time, other=0) != 0
        first = tl.minimum(first, tl.min(tl.where(real, here, time)))
        last = tl.maximum(last, tl.max(tl.where(real, here, -1)))
        if LABELED:
            label = tl.load(labels + here, mask=here < time, other=0).to(tl.float32)
            unknown = tl.maximum(unknown, tl.max((real & (label < 0)).to(tl.int32)))
            known = tl.maximum(known, tl.max((real & (label >= 0)).to(tl.int32)))
            wrong = tl.maximum(wrong, tl.max((real & ((label >= size) | (label != tl.floor(label)))).to(tl.int32)))
    return first, last, unknown, known, wrong


@triton.jit
def _floored(x):
    """Scores as float32, at least FORBIDDEN. NaN stays NaN."""
    x = x.to(tl.float32)
    return tl.where(x < _FORBIDDEN, _FORBIDDEN, x)


@triton.jit
def _row(pointer, tags, size):
    """The scores of all tags, `(BLOCK,)`; zeros for None."""
    if pointer is None:
        return tl.where(tags < size, 0.0, _NO_TAG)
    else:
        return _scores(pointer + tags, tags < size)


@triton.jit
def _scores(pointers, inside):
    return tl.where(inside, _floored(tl.load(pointers, mask=inside, other=0.0)), _NO_TAG)


@triton.jit
def _table(transitions, before, after, size):
    """Transitions from tags to tags, where one of `before` and `after` is a row, and the other one is a column."""
    return _scores(transitions + before * size + after, (before < size) & (after < size))


@triton.jit
def _position(emissions, mask, t, last, size, tags):
    """Whether position `t` is real, and its emissions; after the last position, that one again."""
    t = tl.maximum(tl.minimum(t, last), 0)
    return tl.load(mask + t) != 0, _row(emissions + t * size, tags, size)


@triton.jit
def _count_path(
    emissions, mask, labels, transitions, start, end, counts, steps, last, size, CHUNK: tl.constexpr,
):  # fmt: skip
    """Adds the labels, of which all are known, to counts that are 0, and returns their score."""
    score = tl.full((), 0.0, tl.float64)
    latest = -1  # the last real position of the parts before
    for begin in range(0, last + 1, CHUNK):
        here = begin + tl.arange(0, CHUNK)
        real = tl.load(mask + here, mask=here <= last, other=0) != 0
        label = tl.load(labels + here, mask=real, other=0).to(tl.int32)
        follows = (here > 0) & (here <= last)
        before = tl.where(tl.load(mask + here - 1, mask=follows, other=0) != 0, here - 1, latest)
        before = tl.associative_scan(before, 0, _larger)  # the last real position before each position
        linked = real & (before >= 0)
        tag = tl.load(labels + before, mask=linked, other=0).to(tl.int32)
        row = tl.where(linked, tag, size)  # of the steps
        part = _floored(tl.load(emissions + here * size + label, mask=real, other=0.0)).to(tl.float64)
        part += _floored(tl.load(transitions + tag * size + label, mask=linked, other=0.0))
        if start is not None:
            part += _floored(tl.load(start + label, mask=real & (before < 0), other=0.0))
        score += tl.sum(part)
        tl.store(counts + here * size + label, 1.0, mask=real)
        tl.atomic_add(steps + row * size + label, 1.0, mask=real, sem="relaxed")
        latest = tl.max(tl.where(real, here, latest))
    label = tl.load(labels + last).to(tl.int32)
    if end is not None:
        score += _floored(tl.load(end + label))
    tl.store(steps + (size + 1) * size + label, 1.0)
    return score


@triton.jit
def _larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def _forward(
    emissions, mask, labels, transitions, start, memory, first, last, size, layer, turn,
    BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """log alpha of the last position up to a constant, and the constant. Turn 1 keeps to the labels that are known."""
    tags = tl.arange(0, BLOCK)
    table = _table(transitions, tags[:, None], tags[None, :], size) if TILE == BLOCK else 0.0
    alpha = _row(start, tags, size)
    log_z = tl.full((), 0.0, tl.float64)
    real, row = _position(emissions, mask, first, last, size, tags)
    for t in range(first, last + 1):
        next_real, next_row = _position(emissions, mask, t + 1, last, size, tags)
        if real:
            if turn > 0:
                label = tl.load(labels + t).to(tl.int32)
                row = tl.where((label >= 0) & (tags != label) & (tags < size), _FORBIDDEN, row)
            peak = tl.max(row)
            if t > first:
                tl.store(memory + t * size + tags, alpha, mask=tags < size)
                alpha = _sum_step(alpha, transitions, memory + t * size, table, tags, size, layer, BLOCK, TILE)
            alpha += row - peak
            height = tl.max(alpha)
            alpha -= height
            log_z += peak.to(tl.float64) + height
        real, row = next_real, next_row
    return alpha, log_z


@triton.jit
def _sum_step(alpha, transitions, memory, table, tags, size, layer, BLOCK: tl.constexpr, TILE: tl.constexpr):
    """The logsumexp over the tags before, `(BLOCK,)`, whose two parts go to the memory."""
    tops, inverses = memory + layer, memory + 2 * layer
    for begin in tl.static_range(0, BLOCK, TILE):
        to = begin + tl.arange(0, TILE)
        moved = alpha[:, None] + (table if TILE == BLOCK else _table(transitions, tags[:, None], to[None, :], size))
        top = tl.max(moved, 0)
        inverse = 1 / tl.sum(tl.exp(moved - top[None, :]), 0)
        tl.store(tops + to, top, mask=to < size)
        tl.store(inverses + to, inverse, mask=to < size)
    if TILE < BLOCK:
        tl.debug_barrier()
        top = tl.load(tops + tags, mask=tags < size, other=_NO_TAG)
        inverse = tl.load(inverses + tags, mask=tags < size, other=1.0)
    return top - tl.log(inverse)


@triton.jit
def _backward(
    gamma, mask, transitions, counts, steps, memory, turned, first, last, size, layer, sign,
    BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Adds the posteriors of tags and transitions to the counts, times `sign`; `gamma` has those at `last`."""
    tags = tl.arange(0, BLOCK)
    inside = tags < size
    if TILE == BLOCK:
        before, to = tags[None, :], tags[:, None]
        within = (before < size) & (to < size)
        # Threads share a load by what is contiguous: as it is, they would have the columns to a tag.
        tl.store(turned + to * size + before, tl.load(transitions + before * size + to, mask=within), mask=within)
        tl.debug_barrier()
        table = _table(turned, to, before, size)
        pairs = tl.zeros_like(table)
    _add(steps + (size + 1) * size + tags, sign * gamma, inside)
    real, count, alpha, top, inverse = _kept(mask, counts, memory, last, tags, size, layer)
    for back in range(first, last + 1):
        t = first + last - back
        kept = _kept(mask, counts, memory, tl.maximum(t - 1, 0), tags, size, layer)
        if real:
            tl.store(counts + t * size + tags, count + sign * gamma, mask=inside)
            if t > first:
                ratio = gamma * inverse / tl.sum(gamma)  # the sum is 1 but for rounding, which would add up
                if TILE == BLOCK:
                    moved = tl.exp(alpha[None, :] + table - top[:, None]) * ratio[:, None]
                    pairs += moved
                    gamma = tl.sum(moved, 0)
                else:
                    here = memory + t * size
                    gamma = _tiled_step_back(ratio, top, transitions, steps, here, tags, size, sign, BLOCK, TILE)
        real, count, alpha, top, inverse = kept
    _add(steps + size * size + tags, sign * gamma, inside)
    if TILE == BLOCK:
        _add(steps + before * size + to, sign * pairs, within)


@triton.jit
def _kept(mask, counts, memory, t, tags, size, layer):
    """Whether position `t` is real, its counts, and what the forward recursion kept there."""
    inside, here = tags < size, memory + t * size + tags
    return (
        tl.load(mask + t) != 0,
        tl.load(counts + t * size + tags, mask=inside, other=0.0),
        tl.load(here, mask=inside, other=_NO_TAG),
        tl.load(here + layer, mask=inside, other=_NO_TAG),
        tl.load(here + 2 * layer, mask=inside, other=1.0),
    )


@triton.jit
def _tiled_step_back(ratio, top, transitions, steps, memory, tags, size, sign, BLOCK: tl.constexpr, TILE: tl.constexpr):
    """One step of `_backward` in parts of TILE tags before. The memory of alpha is overwritten by the result."""
    for begin in range(0, BLOCK, TILE):
        before = begin + tl.max_contiguous(tl.arange(0, TILE), 1)
        alpha = tl.load(memory + before, mask=before < size, other=_NO_TAG)
        table = _table(transitions, before[None, :], tags[:, None], size)
        moved = tl.exp(alpha[None, :] + table - top[:, None]) * ratio[:, None]
        within = (before < size)[None, :] & (tags < size)[:, None]
        _add(steps + before[None, :] * size + tags[:, None], sign * moved, within)
        tl.debug_barrier()
        tl.store(memory + before, tl.sum(moved, 0), mask=before < size)
    tl.debug_barrier()
    return tl.load(memory + tags, mask=tags < size, other=0.0)


@triton.jit
def _add(pointer, x, inside):
    tl.store(pointer, tl.load(pointer, mask=inside, other=0.0) + x, mask=inside)


@triton.jit
def _best_step(alpha, transitions, pointers, memory, table, tags, size, BLOCK: tl.constexpr, TILE: tl.constexpr):
    """The best score of a path to each tag, `(BLOCK,)`; the tags before them go to `pointers`."""
    for begin in tl.static_range(0, BLOCK, TILE):
        to = begin + tl.arange(0, TILE)
        moved = alpha[:, None] + (table if TILE == BLOCK else _table(transitions, tags[:, None], to[None, :], size))
        best, before = tl.max(moved, 0, return_indices=True)
        tl.store(pointers + to, before.to(tl.uint8), mask=to < size)
        if TILE < BLOCK:
            tl.store(memory + to, best, mask=to < size)
    if TILE < BLOCK:
        tl.debug_barrier()
        best = tl.load(memory + tags, mask=tags < size, other=_NO_TAG)
        tl.debug_barrier()
    return best

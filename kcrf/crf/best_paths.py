"""The best path of a chain (Viterbi), and its k best paths."""

from collections.abc import Callable
from typing import Any

from kcrf.backend import TensorLike, loop_ops, ops, scan, short_scan
from kcrf.chains import IS_FORBIDDEN
from kcrf.crf.blocks import MaxBlocks, number_of_blocks
from kcrf.crf.trellis import Trellis, tags_first, time_first

_MANY_TAGS = 64  # with more tags, a table (tags, tags, batch) does not fit into the processor's cache


def _max_product(scores: TensorLike) -> Callable[[TensorLike], TensorLike]:
    """The function `x (..., from, batch) -> max over from of x + scores (from, to)`, `(..., to, batch)`."""
    if scores.shape[0] > _MANY_TAGS:
        return lambda columns: ops.transpose(loop_ops.max(ops.transpose(columns)[:, :, None] + scores, axis=1))
    return lambda columns: loop_ops.max(columns[..., None, :] + scores[:, :, None], axis=-3)


def best_path(trellis: Trellis) -> TensorLike:
    """The tags of the best path, `(batch, time)` int32, -1 where masked and where a score is NaN or infinite."""
    blocks = number_of_blocks(trellis, "max")
    tags = _in_blocks(trellis, blocks) if blocks > 1 else _in_one_loop(trellis)  # (time, batch)
    return ops.where(_with_path(trellis), ops.cast(time_first(tags), "int32"), -1)


def _with_path(trellis: Trellis) -> TensorLike:
    """The real positions, `(batch, time)`, of sentences whose scores are numbers: others have no best path."""
    steps = ops.all(trellis.transitions + trellis.start + trellis.end < float("inf"))
    return trellis.mask & (steps & ops.all(trellis.emissions < float("inf"), axis=(1, 2)))[:, None]


def _in_one_loop(trellis: Trellis) -> TensorLike:
    """The tags of the best path, `(time, batch)`, undefined where masked."""
    step, first, inputs = _forward(trellis)
    last, before = short_scan(lambda state, row: (step(state, row), state), first, inputs)
    onward = ops.transpose(trellis.transitions)  # (to, from)

    def backward(tag: TensorLike, inputs: Any) -> Any:
        before, link = inputs  # (batch, tags), (batch,)
        best = loop_ops.argmax(before + loop_ops.take(onward, tag, axis=0), axis=-1)  # (batch, from) -> (batch,)
        return loop_ops.where(link, best, tag), tag

    inputs = (ops.swapaxes(before, 1, 2), time_first(trellis.linked))
    return short_scan(backward, _last_tag(trellis, last), inputs, reverse=True)[1]


def _in_blocks(trellis: Trellis, blocks: int) -> TensorLike:
    recursion = MaxBlocks(blocks)
    step, first, inputs = _forward(trellis.padded(blocks))
    tags = ops.arange(trellis.size, dtype="int32")[:, None]  # (tags, 1)

    def pointers(before: TensorLike, inputs: Any) -> TensorLike:
        scores = before[:, None] + trellis.transitions[:, :, None]  # (from, to, batch)
        is_best = scores == loop_ops.max(scores, axis=0, keepdims=True)
        # `argmax` is slow on axis 0.
        best = loop_ops.min(loop_ops.where(is_best, tags[:, None], trellis.size - 1), axis=0)
        return loop_ops.where(inputs[1], best, tags)  # (to, batch)

    last, back_pointers = recursion.forward(step, pointers, first, inputs)  # (tags, batch), (time, to, batch)
    return recursion.follow(back_pointers, _last_tag(trellis, last))[: trellis.emissions.shape[1]]


def _forward(trellis: Trellis) -> tuple[Callable[..., TensorLike], TensorLike, tuple[TensorLike, TensorLike]]:
    """The step to the best scores `(..., tags, batch)` up to a constant, the first state, and the inputs of steps."""
    best = _max_product(trellis.transitions)

    def step(before: TensorLike, inputs: Any) -> TensorLike:
        emission, link = inputs  # (tags, batch), (1, batch)
        state = loop_ops.where(link, best(before), before) + emission  # (..., tags, batch)
        return state - loop_ops.max(state, axis=tuple(range(len(state.shape) - 1)), keepdims=True)

    first = ops.transpose(trellis.no_rows() + trellis.start)  # (tags, batch)
    return step, first, (tags_first(trellis.emissions), time_first(trellis.linked)[:, None])


def _last_tag(trellis: Trellis, last: TensorLike) -> TensorLike:
    return loop_ops.argmax(ops.transpose(last) + trellis.end, axis=-1)  # (batch, tags) -> (batch,)


def best_paths(trellis: Trellis, k: int) -> tuple[TensorLike, TensorLike]:
    """The tags of the k best paths, `(batch, k, time)`, -1 where masked, and whether each path exists, `(batch, k)`."""
    history, values, tag, rank = _best_prefixes(trellis, k)

    def step(carry: Any, inputs: Any) -> Any:
        state, continues = inputs  # (batch, tags, k), (batch, 1)
        onward = ops.take(ops.transpose(trellis.transitions), carry[0], axis=0)  # (batch, k, tags)
        _, picked = _best(_merge(state[:, None] + onward[..., None]), k)  # (batch, k, tags * k) -> (batch, k, k)
        picked = ops.take_along_axis(picked, carry[1][..., None], axis=-1)[..., 0]  # (batch, k)
        here = (picked // k, picked % k)  # tag and rank of the position before, (batch, k) each
        carry = tuple(ops.where(continues, new, old) for new, old in zip(here, carry, strict=True))
        return carry, carry

    inputs = (history, time_first(trellis.continues)[:, :, None])
    _, (tags, _) = scan(step, (tag, rank), inputs, reverse=True)  # (time, batch, k)
    tags = ops.where(_with_path(trellis)[:, None, :], ops.transpose(tags, (1, 2, 0)), -1)
    alone = ops.arange(k) == 0  # (k,): an empty sentence has one path
    return tags, (values > IS_FORBIDDEN) & (trellis.occupied[:, None] | alone) | alone


def _best_prefixes(trellis: Trellis, k: int) -> tuple[TensorLike, TensorLike, TensorLike, TensorLike]:
    """Scores of the k best prefixes, `(time, batch, tags, k)`; score, last tag, rank of best paths, `(batch, k)`."""

    def step(state: TensorLike, inputs: Any) -> Any:
        emission, link = inputs  # (batch, tags), (batch, 1)
        arrived = _best(_merge(state[:, None] + moves[..., None]), k)[0]  # (batch, to, from * k) -> (batch, to, k)
        state = ops.where(link[:, :, None], arrived, state) + emission[:, :, None]  # (batch, tags, k)
        state = state - ops.max(state, axis=(1, 2), keepdims=True)
        return state, state

    moves = ops.transpose(trellis.transitions)  # (to, from)
    state = (trellis.no_rows() + trellis.start)[:, :, None] + ops.where(ops.arange(k) == 0, 0.0, -float("inf"))
    inputs = (time_first(trellis.emissions), time_first(trellis.linked)[:, :, None])
    state, history = scan(step, state, inputs)
    values, picked = _best(_merge(state + trellis.end[:, None]), k)  # (batch, tags * k) -> (batch, k)
    return history, values - values[:, :1], picked // k, picked % k


def _merge(x: TensorLike) -> TensorLike:
    return ops.reshape(x, (-1, *x.shape[1:-2], x.shape[-2] * x.shape[-1]))


def _best(x: TensorLike, k: int) -> tuple[TensorLike, TensorLike]:
    """The k largest values of the last axis, and their int32 indices."""
    if k == 1:
        return ops.max(x, axis=-1, keepdims=True), ops.cast(ops.argmax(x, axis=-1, keepdims=True), "int32")
    values, indices = ops.top_k(x, k)
    return values, ops.cast(indices, "int32")

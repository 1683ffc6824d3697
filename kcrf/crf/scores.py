"""Scores of paths and of expected counts, and the gradient of log Z."""

from typing import TypeAlias

from kcrf.backend import TensorLike, ops
from kcrf.chains import FORBIDDEN
from kcrf.crf.trellis import Trellis

# A score (batch,), and how often each tag (batch, time, tags) and each transition (batch, from, to) occurs.
Counts: TypeAlias = tuple[TensorLike, TensorLike, TensorLike]

LONGEST = 2**20  # the longest sentence in a graph whose length is unknown


def path_counts(trellis: Trellis, tags: TensorLike) -> Counts:
    """The counts of `forward_backward` for a single path `tags (batch, time)`: its score, its tags and its steps."""
    here = ops.cast(_one_hot(trellis, tags), "float32")  # (batch, time, tags)
    before = ops.one_hot(previous(tags, trellis.mask), trellis.size)  # (batch, time, tags), zeros at the first position
    steps = ops.matmul(ops.swapaxes(before, 1, 2), here)  # (batch, from, to)
    return expected_score(trellis, here, steps), here, steps


def with_gradient(trellis: Trellis, counts: Counts) -> TensorLike:
    """The value log Z `(batch,)` with the gradient of the expected counts, through which no gradient flows."""
    log_z, tags, steps = (ops.stop_gradient(x) for x in counts)
    expected = expected_score(trellis, tags, steps)  # (batch,)
    return log_z + (expected - ops.stop_gradient(expected))


def expected_score(trellis: Trellis, tags: TensorLike, steps: TensorLike) -> TensorLike:
    """The sum of all scores, weighted by `tags (batch, time, tags)` and `steps (batch, from, to)`; `(batch,)`."""
    emitted = ops.sum(tags * trellis.emissions, axis=(1, 2))  # (batch,)
    moved = ops.sum(steps * trellis.transitions, axis=(1, 2))  # (batch,)
    return emitted + moved + (_boundary_score(trellis, tags) if trellis.bounded else 0.0)


def _boundary_score(trellis: Trellis, weights: TensorLike) -> TensorLike:
    """`start` and `end`, weighted by `weights (batch, time, tags)` at the first and last real position; `(batch,)`."""
    first = ops.sum(ops.where(trellis.first[:, :, None], weights, 0.0), axis=1)  # (batch, tags)
    last = ops.sum(ops.where(trellis.last[:, :, None], weights, 0.0), axis=1)  # (batch, tags)
    return ops.sum(first * trellis.start + last * trellis.end, axis=1)


def restrict(trellis: Trellis, tags: TensorLike) -> TensorLike:
    """The emissions with all other tags than the given ones forbidden; an unknown tag, -1, forbids nothing."""
    free = (tags < 0)[:, :, None] | ~trellis.mask[:, :, None]  # (batch, time, 1)
    return ops.where(_one_hot(trellis, tags) | free, trellis.emissions, FORBIDDEN)


def _one_hot(trellis: Trellis, tags: TensorLike) -> TensorLike:
    """One-hot `tags (batch, time)` as bool, False where masked or unknown; `(batch, time, tags)`."""
    return (tags[:, :, None] == ops.arange(trellis.size, dtype="int32")) & trellis.mask[:, :, None]


def previous(tags: TensorLike, mask: TensorLike) -> TensorLike:
    """The tag of the last real position before each position, -1 if there is none; `(batch, time)`."""
    before = _shift(ops.where(mask, tags, -1), fill=-1)  # (batch, time)
    reach = 1  # log(time) rounds: each doubles the number of masked positions in a row that are skipped
    while reach < (tags.shape[1] or LONGEST):
        before = ops.where(before < 0, _shift(before, reach, fill=-1), before)
        reach *= 2
    return before


def _shift(x: TensorLike, by: int = 1, fill: int = 0) -> TensorLike:
    """Moves `x (batch, time, ...)` to the right by `by` positions."""
    return ops.concatenate([ops.full_like(x[:, :by], fill), x[:, :-by]], axis=1)

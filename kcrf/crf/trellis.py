"""`Trellis`: a chain as the recursions need it, in float32; scores of paths and counts, and the gradient of log Z."""

from copy import copy
from typing import Any, TypeAlias

from kcrf.backend import TensorLike, ops
from kcrf.chains import FORBIDDEN
from kcrf.crf.chain import Chain

# A score (batch,), and how often each tag (batch, time, tags) and each transition (batch, from, to) occurs.
Counts: TypeAlias = tuple[TensorLike, TensorLike, TensorLike]

LONGEST = 2**20  # the longest sentence in a graph whose length is unknown


class Trellis:
    """The tags of a chain at each position, with their scores in float32.

    Attributes:
        emissions: `(batch, time, tags)`, 0 where masked.
        start, end: `(tags,)`, zeros if not given, which `bounded` tells.
        occupied: `(batch,)` bool, whether the sentence has a real position.
        first, last: `(batch, time)` bool, the first and the last real position.
        linked, continues: `(batch, time)` bool, real positions with a real position before, or after them.
        offset: `(batch,)`, the value that `centered` subtracted from the score of every path, or None.
    """

    def __init__(self, chain: Chain) -> None:
        emissions, mask = ops.convert_to_tensor(chain.emissions), chain.mask
        self.size: int = emissions.shape[-1]
        self.transitions = self._scores(chain.transitions)
        self.bounded = chain.start is not None or chain.end is not None
        self.start = self._scores(chain.start)
        self.end = self._scores(chain.end)
        if mask is None:
            mask = ops.ones_like(emissions[:, :, 0], dtype="bool")
        self.mask = ops.cast(mask, "bool")
        emissions = ops.maximum(ops.cast(emissions, "float32"), FORBIDDEN)
        self.emissions = ops.where(self.mask[:, :, None], emissions, 0.0)
        seen = ops.cumsum(ops.cast(self.mask, "int32"), axis=1)  # (batch, time)
        total = ops.sum(ops.cast(self.mask, "int32"), axis=1, keepdims=True)  # (batch, 1)
        self.occupied = total[:, 0] > 0
        self.first = self.mask & (seen == 1)
        self.last = self.mask & (seen == total)
        self.linked = self.mask & (seen > 1)
        self.continues = self.mask & (seen < total)
        self.offset: TensorLike | None = None

    def _scores(self, value: TensorLike | None) -> TensorLike:
        if value is None:
            return ops.zeros((self.size,), dtype="float32")
        return ops.maximum(ops.cast(ops.convert_to_tensor(value), "float32"), FORBIDDEN)

    def replace(self, **fields: Any) -> "Trellis":
        other = copy(self)
        other.__dict__.update(fields)
        return other

    def detached(self) -> "Trellis":
        """A copy without gradient."""
        names = ("emissions", "transitions", "start", "end")
        return self.replace(**{name: ops.stop_gradient(getattr(self, name)) for name in names})

    def with_emissions(self, emissions: TensorLike) -> "Trellis":
        """A copy with other emissions, which must be 0 where masked."""
        return self.replace(emissions=emissions, offset=None)

    def centered(self) -> "Trellis":
        """A copy whose largest scores are 0: the same distribution over paths, with fewer digits lost to rounding."""
        if self.offset is not None:
            return self
        peaks = ops.stop_gradient(ops.max(self.emissions, axis=-1, keepdims=True))  # (batch, time, 1)
        tops = {name: ops.stop_gradient(ops.max(getattr(self, name))) for name in ("transitions", "start", "end")}
        steps = ops.sum(ops.cast(self.linked, "float32"), axis=1)  # (batch,)
        ends = ops.where(self.occupied, tops["start"] + tops["end"], 0.0)  # (batch,)
        offset = ops.sum(peaks, axis=(1, 2)) + tops["transitions"] * steps + ends
        shifted = {name: getattr(self, name) - top for name, top in tops.items()}
        return self.replace(emissions=self.emissions - peaks, offset=offset, **shifted)

    def repeat(self, k: int) -> "Trellis":
        """A copy with every sentence repeated k times."""
        names = ("emissions", "mask", "occupied", "first", "last", "linked", "continues")
        return self.replace(**{name: ops.repeat(getattr(self, name), k, axis=0) for name in names})

    def padded(self, multiple: int) -> "Trellis":
        """A copy with masked positions at the end, so that `multiple`, at most its length, divides its length."""
        if multiple == 1:
            return self
        missing = -self.emissions.shape[1] % multiple
        names = ("emissions", "mask", "first", "last", "linked", "continues")
        fields = {name: getattr(self, name) for name in names if missing}
        longer = {n: ops.concatenate([x, ops.zeros_like(x[:, :missing])], axis=1) for n, x in fields.items()}
        return self.replace(**longer)

    def no_rows(self) -> TensorLike:
        """Zeros `(batch, tags)`."""
        return ops.zeros_like(ops.sum(self.emissions, axis=1))

    def no_steps(self) -> TensorLike:
        """Zeros `(batch, tags, tags)`."""
        return ops.zeros_like(self.no_rows()[:, :, None] + self.transitions)


def time_first(x: TensorLike) -> TensorLike:
    return ops.swapaxes(x, 0, 1)


def tags_first(x: TensorLike) -> TensorLike:
    """Transposes `(batch, time, tags)` to `(time, tags, batch)`: the long axis last, so that it is contiguous."""
    return ops.transpose(x, (1, 2, 0))


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
    if not trellis.bounded:
        return emitted + moved
    first = ops.sum(ops.where(trellis.first[:, :, None], tags, 0.0), axis=1)  # (batch, tags)
    last = ops.sum(ops.where(trellis.last[:, :, None], tags, 0.0), axis=1)  # (batch, tags)
    return emitted + moved + ops.sum(first * trellis.start + last * trellis.end, axis=1)


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
    first = ops.zeros_like(x[:, :by])  # `ops.full_like` waits for CUDA
    return ops.concatenate([first + fill if fill else first, x[:, :-by]], axis=1)

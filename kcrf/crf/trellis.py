"""`Trellis`: a chain as the recursions need it, in float32, with masks of special positions."""

from copy import copy
from typing import Any

from kcrf.backend import TensorLike, ops
from kcrf.chains import FORBIDDEN
from kcrf.crf.chain import Chain


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

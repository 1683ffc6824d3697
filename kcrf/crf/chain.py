"""The arguments of every function of this folder, checked and brought into one form."""

from copy import copy

from kcrf.backend import ops

__all__ = ["Chain", "FORBIDDEN", "IS_FORBIDDEN", "tags_first", "time_first"]

FORBIDDEN = -1e9  # finite, since -inf turns into NaN in gradients; beyond any sum of scores of a sentence
IS_FORBIDDEN = FORBIDDEN / 2  # what was added to a forbidden score does not make it legal


class Chain:
    """The arguments of every function here in float32, masked emissions 0, and what the loops ask of the mask."""

    def __init__(self, emissions, mask, transitions, start, end):
        emissions = ops.convert_to_tensor(emissions)
        if len(emissions.shape) != 3:
            raise ValueError(f"`crf` needs emissions of shape (batch, time, tags). Received: shape={emissions.shape}")
        self.size = emissions.shape[-1]
        self.transitions = self._scores(transitions, "transitions", (self.size, self.size))
        self.bounded = start is not None or end is not None
        self.start = self._scores(start, "start", (self.size,))
        self.end = self._scores(end, "end", (self.size,))
        if mask is None:
            mask = ops.ones_like(emissions[:, :, 0], dtype="bool")
        self.mask = ops.cast(mask, "bool")
        if len(self.mask.shape) != 2:
            raise ValueError(f"`crf` needs a mask of shape (batch, time). Received: shape={self.mask.shape}")
        emissions = ops.maximum(ops.cast(emissions, "float32"), FORBIDDEN)
        self.emissions = ops.where(self.mask[:, :, None], emissions, 0.0)
        seen = ops.cumsum(ops.cast(self.mask, "int32"), axis=1)
        total = ops.sum(ops.cast(self.mask, "int32"), axis=1, keepdims=True)
        self.occupied = total[:, 0] > 0  # (batch,)
        self.first = self.mask & (seen == 1)  # (batch, time), as the others
        self.last = self.mask & (seen == total)
        self.linked = self.mask & (seen > 1)  # a step arrives here from the real position before
        self.continues = self.mask & (seen < total)  # a step leaves from here
        self.offset = None  # (batch,), once centred: what every path's score has lost

    def _scores(self, value, name, shape):
        if value is None:
            return ops.zeros(shape, dtype="float32")
        value = ops.cast(ops.convert_to_tensor(value), "float32")
        if tuple(value.shape) != shape:
            raise ValueError(f"`crf` needs `{name}` of shape {shape}. Received: shape={tuple(value.shape)}")
        return ops.maximum(value, FORBIDDEN)

    def replace(self, **fields):
        """The same chain with other fields."""
        other = copy(self)
        other.__dict__.update(fields)
        return other

    def detached(self):
        """The same chain, through which no gradient flows."""
        names = ("emissions", "transitions", "start", "end")
        return self.replace(**{name: ops.stop_gradient(getattr(self, name)) for name in names})

    def with_emissions(self, emissions):
        """The same chain with other emissions, 0 where masked."""
        return self.replace(emissions=emissions, offset=None)

    def centred(self):
        """The same distribution over paths with the best score everywhere 0, so that differences keep their digits."""
        if self.offset is not None:
            return self
        peaks = ops.stop_gradient(ops.max(self.emissions, axis=-1, keepdims=True))
        tops = {name: ops.stop_gradient(ops.max(getattr(self, name))) for name in ("transitions", "start", "end")}
        steps = ops.sum(ops.cast(self.linked, "float32"), axis=1)
        ends = ops.where(self.occupied, tops["start"] + tops["end"], 0.0)
        offset = ops.sum(peaks, axis=(1, 2)) + tops["transitions"] * steps + ends
        shifted = {name: getattr(self, name) - top for name, top in tops.items()}
        return self.replace(emissions=self.emissions - peaks, offset=offset, **shifted)

    def repeat(self, k):
        """Every sentence k times in a row."""
        names = ("emissions", "mask", "occupied", "first", "last", "linked", "continues")
        return self.replace(**{name: ops.repeat(getattr(self, name), k, axis=0) for name in names})

    def no_rows(self):
        """Zeros `(batch, tags)`."""
        return ops.zeros_like(ops.sum(self.emissions, axis=1))

    def no_steps(self):
        """Zeros `(batch, tags, tags)`."""
        return ops.zeros_like(self.no_rows()[:, :, None] + self.transitions)


def time_first(x):
    """`(batch, time, ...)` as `(time, batch, ...)`."""
    return ops.swapaxes(x, 0, 1)


def tags_first(x):
    """`(batch, time, tags)` as `(time, tags, batch)`: of few tags and many sentences, processors like the last best."""
    return ops.transpose(x, (1, 2, 0))

"""The maximum entropy Markov model (McCallum et al., 2000) in both directions, as bert4keras defines it.

Each tag has a softmax given the tag next to it, so training needs no recursion over time. The scores of a tag are the
mean of its emissions and the transitions from (or to) its neighbor; at the edge of a sentence its emissions. Loss and
decoding take the mean of both directions' log probabilities.

The normalizer of a position depends on one neighbor's tag, so it can be moved into that neighbor's emissions. The
model then is a CRF (`equal_crf`), whose Viterbi and marginals decode it exactly.
"""

from dataclasses import replace
from typing import Any, Unpack

from kcrf import crf
from kcrf.backend import Tensor, TensorLike, graph, keras, ops, scan
from kcrf.backend.hints import KeyedLayerOptions
from kcrf.crf.functions import is_no_tag
from kcrf.layers.chain_layer import real_positions
from kcrf.layers.crf import ConditionalRandomField
from kcrf.layers.labels import sparse_tags
from kcrf.layers.losses import DenseLoss, SentenceLoss, SparseLoss

_OF_CRF_ALONE = {"use_boundary", "constraints"}


def equal_crf(emissions: TensorLike, mask: Any, transitions: TensorLike) -> tuple[Any, Any]:
    """The emissions `(batch, time, tags)` and transitions of a CRF whose path scores are the log probabilities."""
    emissions = ops.convert_to_tensor(emissions)
    halves = ops.convert_to_tensor(transitions) / 2.0
    folded = _folded(emissions, mask, halves)
    return ops.reshape(folded, ops.shape(emissions)), halves  # restores the static tag dimension


@graph
def _folded(emissions: TensorLike, mask: Any, transitions: TensorLike) -> Any:
    """The emissions of the equal CRF; `transitions` are halved already."""
    order = _real_first(mask)
    real = _take(ops.cast(mask, "bool"), order)
    forbidden = _take(emissions <= crf.FORBIDDEN, order)
    emissions = _take(_finite(emissions, mask), order)
    before, behind = _shift(real, 1, False), _shift(real, -1, False)  # whether a real position is there
    halves = emissions / 2.0
    alone = emissions - ops.logsumexp(emissions, axis=-1, keepdims=True)
    from_left = ops.where(before[:, :, None], halves, alone)
    from_right = ops.where(behind[:, :, None], halves, alone)
    owed_left = _shift(_normalizers(halves, transitions), -1, 0.0)  # the normalizer of the next position
    owed_right = _shift(_normalizers(halves, ops.transpose(transitions)), 1, 0.0)
    owed = ops.where(behind[:, :, None], owed_left, 0.0) + ops.where(before[:, :, None], owed_right, 0.0)
    folded = ops.where(forbidden, crf.FORBIDDEN, (from_left + from_right - owed) / 2.0)
    return _take(folded, ops.argsort(order, axis=1))


@graph  # in float32, also under `torch.autocast`
def _product(left: Any, right: Any) -> Any:
    """The product of one matrix, or of several, with the transposed matrix `right`."""
    return ops.matmul(left, ops.transpose(right))


@keras.saving.register_keras_serializable(package="kcrf")
class MaximumEntropyMarkovModel(ConditionalRandomField):
    """The maximum entropy Markov model on top of emission scores, used like a CRF and cheaper to train.

    It has the masks, losses, metrics and decoders of `ConditionalRandomField`. An unknown (negative) tag has no loss,
    and its neighbors are scored as at the edge of a sentence.
    """

    def __init__(
        self,
        lr_multiplier: float = 1,
        hidden_dim: int | None = None,
        transition_initializer: Any = "glorot_uniform",
        **kwargs: Unpack[KeyedLayerOptions],
    ) -> None:
        for name in _OF_CRF_ALONE & kwargs.keys():
            raise TypeError(
                f"`MaximumEntropyMarkovModel` has no argument `{name}`: use `ConditionalRandomField`. "
                f"Received: {kwargs}"
            )
        super().__init__(lr_multiplier, False, None, transition_initializer, **kwargs)
        if hidden_dim is not None and hidden_dim < 1:
            raise ValueError(f"`hidden_dim` must be at least 1, or None. Received: hidden_dim={hidden_dim}")
        self.hidden_dim = hidden_dim

    def _add_transitions(self, size: int) -> None:
        if self.hidden_dim is None:
            return super()._add_transitions(size)
        shape = (size, self.hidden_dim)
        # a copy: the same instance would draw the same values
        another = keras.initializers.get(keras.initializers.serialize(self.transition_initializer))
        self._trans, self._r_trans = self._add_scores("l_trans", shape), self._add_scores("r_trans", shape, another)

    @property
    def l_trans(self) -> Tensor | None:
        """The left factor of the transitions, `(tags, hidden_dim)`, or None without `hidden_dim`."""
        return None if self.hidden_dim is None else self._effective(self._trans, None)

    @property
    def r_trans(self) -> Tensor | None:
        """The right factor of the transitions, `(tags, hidden_dim)`, or None without `hidden_dim`."""
        return None if self.hidden_dim is None else self._effective(self._r_trans, None)

    @property
    def trans(self) -> Tensor:
        """The transition scores, `(tags, tags)`, from row to column."""
        return super().trans if self.hidden_dim is None else _product(self.l_trans, self.r_trans)

    def basic_loss(self, y_true: TensorLike, y_pred: TensorLike, go_backwards: bool = False) -> Tensor:
        """The loss of one direction, `(batch,)`: minus the log probability of the known tags given their neighbors."""
        y_pred = ops.convert_to_tensor(y_pred)
        mask = real_positions(y_pred)
        order = _real_first(mask)
        emissions = _take(_finite(y_pred, mask), order)
        tags = sparse_tags(y_true, y_pred)
        tags = _take(ops.where(mask, tags, -1), order)
        beside = _shift(tags, -1 if go_backwards else 1, -1)  # the neighbor's tag, negative if unknown or absent
        history = self._history(ops.maximum(beside, 0), go_backwards)
        scores = ops.where((beside >= 0)[:, :, None], (emissions + history) / 2.0, emissions)
        gold = ops.take_along_axis(scores, ops.maximum(tags, 0)[:, :, None], axis=-1)[:, :, 0]
        return ops.sum(ops.where(tags >= 0, ops.logsumexp(scores, axis=-1) - gold, 0.0), axis=1)

    def _history(self, tags: TensorLike, go_backwards: Any) -> Any:
        """The transition scores that a neighbor's tag adds at each position, `(batch, time, tags)`."""
        if self.hidden_dim is None:
            return ops.take(ops.transpose(self.trans) if go_backwards else self.trans, tags, axis=0)
        factors = (self.r_trans, self.l_trans) if go_backwards else (self.l_trans, self.r_trans)
        return _product(ops.take(factors[0], tags, axis=0), factors[1])

    def chain(self, y_pred: TensorLike, scores: Any = None) -> crf.Chain:
        """The CRF that scores paths as the model does, see `equal_crf`."""
        chain = super().chain(y_pred, scores)
        emissions, transitions = equal_crf(chain.emissions, chain.mask, chain.transitions)
        return replace(chain, emissions=emissions, transitions=transitions)

    @property
    def sparse_loss(self) -> Any:
        """The loss for tags as ints, `(y_true (batch, time), y_pred) -> (batch,)`: the mean of both directions."""
        return MarkovSparseLoss(layer=self)

    @property
    def dense_loss(self) -> Any:
        """The loss for one-hot tags, `(y_true (batch, time, tags), y_pred) -> (batch,)`. A row of zeros is unknown."""
        return MarkovDenseLoss(layer=self)

    def get_config(self) -> dict[str, Any]:
        config = {**super().get_config(), "hidden_dim": self.hidden_dim}
        return {name: value for name, value in config.items() if name not in _OF_CRF_ALONE}


class _BothDirections(SentenceLoss):
    def _losses(self, y_true: TensorLike, y_pred: TensorLike) -> Any:
        layer, tags = self._layer(), self._read(y_true, y_pred)[1]
        wrong = is_no_tag(tags, y_pred.shape[-1]) & real_positions(y_pred)  # (batch, time)
        tags = ops.where(wrong, -1.0, ops.cast(tags, "float32"))
        losses = (layer.basic_loss(tags, y_pred) + layer.basic_loss(tags, y_pred, go_backwards=True)) / 2.0
        return ops.where(ops.any(wrong, axis=1), float("nan"), losses)


@keras.saving.register_keras_serializable(package="kcrf")
class MarkovSparseLoss(_BothDirections, SparseLoss):
    """`MaximumEntropyMarkovModel.sparse_loss`."""


@keras.saving.register_keras_serializable(package="kcrf")
class MarkovDenseLoss(_BothDirections, DenseLoss):
    """`MaximumEntropyMarkovModel.dense_loss`."""


def _finite(emissions: TensorLike, mask: Any) -> Any:
    """The emissions in float32 without infinities: 0 where masked, `crf.FORBIDDEN` at least."""
    emissions = ops.maximum(ops.cast(emissions, "float32"), crf.FORBIDDEN)
    return ops.where(ops.cast(mask, "bool")[:, :, None], emissions, 0.0)


def _real_first(mask: Any) -> Any:
    """The indices that sort real positions to the front, in their order; `(batch, time)`."""
    positions = ops.cumsum(ops.ones_like(mask, dtype="int32"), axis=1)
    return ops.argsort(ops.where(mask, positions, positions + ops.shape(mask)[1]), axis=1)


def _take(x: Any, order: Any) -> Any:
    return ops.take_along_axis(x, order if len(x.shape) == 2 else order[:, :, None], axis=1)


def _shift(x: Any, by: Any, fill: Any) -> Any:
    """`x (batch, time, ...)` moved by one position to the right (`by=1`) or to the left (`by=-1`)."""
    padding = [[0, 0], [1, 0] if by > 0 else [0, 1]] + [[0, 0]] * (len(x.shape) - 2)
    return ops.pad(x[:, :-1] if by > 0 else x[:, 1:], padding, constant_values=fill)


def _normalizers(scores: Any, transitions: TensorLike) -> Any:
    """logsumexp over j of `scores[b, t, j] + transitions[i, j]`, `(batch, time, tags i)`, tag by tag to save memory."""

    def step(state: Any, row: Any) -> tuple[Any, Any]:
        value = ops.logsumexp(scores + row, axis=-1)
        return value, value

    _, values = scan(step, scores[:, :, 0], transitions)  # (tags, batch, time)
    return ops.transpose(values, (1, 2, 0))

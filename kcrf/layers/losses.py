"""The losses of a CRF layer: computed with its weights, saved with it."""

import math
from typing import Any

import numpy as np

from kcrf import crf
from kcrf.backend import OLD_HOST, Tensor, TensorLike, backend_name, check_if, constant_beside, keras, ops, raise_if
from kcrf.crf.functions import is_no_tag
from kcrf.layers.chain_layer import BoundToLayer, real_positions
from kcrf.layers.labels import has_rank, one_hot_labels, sparse_labels, tags_of_one_hot

_NOT_GIVEN = object()
_IN_FLOAT32 = {} if OLD_HOST else {"dtype": "float32"}  # Keras 3 casts labels; bfloat16 has not all integers above 256
_IMPOSSIBLE = -crf.FORBIDDEN / 2  # a loss above this: constraints forbid the labels, or training diverged


class SentenceLoss(BoundToLayer, keras.losses.Loss):
    """One loss per sentence, and an error that names the first label without a likelihood, or that is forbidden.

    Compiled functions raise their backend's error, torch on CUDA with a later batch, without waiting. The loss of the
    sentence is NaN, and it has no gradient: XLA on TensorFlow and `torch.compile` cannot raise.
    """

    def __init__(
        self, layer: Any = None, name: str | None = None, reduction: str = "sum_over_batch_size", key: str | None = None
    ) -> None:
        super().__init__(name=name, reduction=reduction, **_IN_FLOAT32)
        self._bind(layer, key)

    def __call__(self, y_true: TensorLike, y_pred: TensorLike, sample_weight: Any = _NOT_GIVEN) -> Tensor:
        """The losses `(batch,)`, or their weighted mean if `sample_weight` is given, even as None, as Keras does."""
        layer = self._layer_for(y_pred)
        layer.check_weights(y_pred)
        for accuracy in layer.viterbi_accuracies:
            accuracy.copy_scores()
        if sample_weight is _NOT_GIVEN:
            return self._checked(y_true, ops.convert_to_tensor(y_pred))
        has_axes = sample_weight is not None and has_rank(sample_weight) and len(sample_weight.shape) > 1
        if has_axes and sample_weight.shape[1] != 1:
            raise ValueError(
                "A CRF has one loss per sentence, so `sample_weight` must have the shape (batch,): the likelihood of a "
                "sentence is not a sum over its tokens. To leave tokens out, give them the tag -1 (unknown) or mask "
                f"them. Received: shape={tuple(sample_weight.shape)}"
            )
        if sample_weight is not None:
            batch = -1 if has_rank(sample_weight) else ops.shape(y_pred)[0]
            sample_weight = ops.reshape(sample_weight, (batch,))
        if backend_name() == "torch" and sample_weight is None and self.reduction == "sum_over_batch_size":
            losses = self.call(*(ops.convert_to_tensor(y, dtype="float32") for y in (y_true, y_pred)))
            return ops.sum(losses) / max(len(losses), 1)  # Keras copies this number to CUDA, and waits
        mean = super().__call__(y_true, y_pred, sample_weight)
        is_reduced = self.reduction not in (None, "none")
        return ops.sum(mean) if is_reduced and tuple(mean.shape) == (0,) else mean  # Keras reduces no empty batch

    def call(self, y_true: TensorLike, y_pred: TensorLike) -> Any:
        """The losses `(batch,)` for Keras' trainer. Forbidden labels are an error."""
        losses = self._checked(y_true, y_pred, highest=_IMPOSSIBLE)
        self._layer().check_labels(y_true, y_pred)
        return losses

    def _checked(self, y_true: TensorLike, y_pred: TensorLike, highest: float = math.inf) -> Any:
        """The losses `(batch,)`, and an error if one is NaN or too high. One check costs fewer kernels than two."""
        losses = self._losses(y_true, y_pred)
        right = losses <= highest  # (batch,), False for NaN. TensorFlow turns `~(a <= b)` into `a > b`, which is, too
        outputs, values = map(ops.stop_gradient, (y_pred, losses))  # a check that waits must not keep the step's graph
        constrained = self._layer().constraints is not None  # else training diverged
        check_if(~ops.all(right), lambda: self._refuse(y_true, outputs, (values > highest) & constrained))
        return ops.where(right, losses, constant_beside(losses, np.float32("nan")))

    def _losses(self, y_true: TensorLike, y_pred: TensorLike) -> Any:
        return -crf.log_likelihood(self._layer().chain(y_pred), self._read(y_true, y_pred)[1])

    def _read(self, y_true: TensorLike, y_pred: TensorLike) -> tuple[Any, Any]:
        """The labels `(batch, time)`, and their tags: numbers, as `crf.log_likelihood` takes them."""
        y_true = sparse_labels(y_true, y_pred)
        return y_true, y_true

    def _refuse(self, y_true: TensorLike, y_pred: TensorLike, forbidden: TensorLike) -> None:
        """Raises an error for the first label that is no tag, or is forbidden. There is none if the model diverged."""
        labels, tags = self._read(y_true, y_pred)
        wrong = is_no_tag(tags, y_pred.shape[-1]) & real_positions(y_pred)  # (batch, time)
        index = _first(ops.reshape(wrong, (-1,)))
        time = ops.cast(ops.maximum(ops.shape(wrong)[1], 1), index.dtype)
        label = ops.take(ops.pad(ops.reshape(labels, (-1,)), [[0, 1]]), index)
        message = self._requirement(y_pred.shape[-1]) + "label {} in sentence {}, position {} of the batch"
        raise_if(ops.any(wrong), message, label, index // time, index % time)
        raise_if(
            ops.any(forbidden),
            "Labels must be allowed by the constraints of the CRF; `kcrf.tags.check_tags` finds those that are not, "
            "and repairs them. Received: forbidden labels in sentence {} of the batch",
            _first(forbidden),
        )

    def _requirement(self, number: Any) -> str:
        return f"Labels must be integers below {number}, the number of tags, or negative if unknown. Received: "

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "key": self._layer_key}


def _first(flags: Any) -> Any:
    """The index of the first True of flags `(n,)`; n if there is none, as in an empty batch."""
    return ops.argmax(ops.pad(flags, [[0, 1]], constant_values=True))


@keras.saving.register_keras_serializable(package="kcrf")
class SparseLoss(SentenceLoss):
    """`ConditionalRandomField.sparse_loss`."""


@keras.saving.register_keras_serializable(package="kcrf")
class DenseLoss(SentenceLoss):
    """`ConditionalRandomField.dense_loss`."""

    def _read(self, y_true: TensorLike, y_pred: TensorLike) -> tuple[Any, Any]:
        y_true = one_hot_labels(y_true, y_pred)
        positive, tags = y_true > 0, tags_of_one_hot(y_true)
        wrong = ops.any((positive & (y_true != 1)) | (y_true != y_true), axis=-1)  # soft labels, NaN
        wrong = wrong | (ops.sum(ops.cast(positive, "int32"), axis=-1) > 1)
        return tags, ops.where(wrong, y_pred.shape[-1], tags)

    def _requirement(self, number: Any) -> str:
        return (
            "One-hot labels must be 1 for one tag at most and 0 for all others: the loss takes no soft labels, such as "
            "label smoothing makes. Received: more than "
        )

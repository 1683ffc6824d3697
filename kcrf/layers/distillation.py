"""Distillation losses: `(1 - A) * loss on the labels + A * T^2 * cross-entropy with the teacher's predictions`.

A is the weight of the teacher. Both scores are divided by the temperature T, whose square keeps the gradients as large
(Hinton et al. 2015, section 2, https://arxiv.org/abs/1503.02531). Unknown labels add nothing.
"""

from typing import Any, NamedTuple

import numpy as np

from kcrf import crf
from kcrf.backend import keras, ops
from kcrf.layers.losses import SentenceLoss


class SoftTags(NamedTuple):
    """The target of a window.

    Attributes:
        tags: A list of ints, -1 for unknown tags.
        expected_tags: `(positions, tags)`, the teacher's marginals; zeros at positions without a tag.
        expected_steps: `(tags, tags)`, the expected count of each transition under the teacher.
    """

    tags: list
    expected_tags: np.ndarray
    expected_steps: np.ndarray

    def padded(self, length: int) -> np.ndarray:
        """The target of a window as an array `(length + tags, 1 + tags)`, padded to `length` positions.

        Keras requires a single array as the target of an output. Each of the upper rows is a position: the tag, then
        the expected tags. The lower rows are the expected transitions. `unpack_tags` is the inverse.
        """
        size = len(self.expected_steps)
        array = np.zeros((length + size, 1 + size), "float32")
        array[:length, 0] = -1
        array[: len(self.tags), 0] = self.tags
        array[: len(self.tags), 1:] = self.expected_tags
        array[length:, 1:] = self.expected_steps
        return array


def unpack_tags(targets: Any, size: int) -> tuple[Any, Any, Any]:
    """Unpacks `SoftTags.padded` `(batch, time + tags, 1 + tags)` into tags, expected tags and expected steps."""
    return targets[:, :-size, 0], targets[:, :-size, 1:], targets[:, -size:, 1:]


@keras.saving.register_keras_serializable(package="kcrf")
class SequenceDistillationLoss(SentenceLoss):
    """The loss of a CRF on the teacher's distribution over tag sequences, `kcrf.crf.distillation_loss`.

    With a `teacher_weight` of 1 the tags are not looked at. `y_true` holds `SoftTags.padded(time)`, see `unpack_tags`.
    """

    def __init__(
        self,
        layer: Any = None,
        teacher_weight: float = 0.9,
        temperature: float = 1.0,
        name: str | None = None,
        reduction: str = "sum_over_batch_size",
        key: str | None = None,
    ) -> None:
        super().__init__(layer, name, reduction, key)
        self.teacher_weight, self.temperature = teacher_weight, temperature

    def _losses(self, y_true: Any, y_pred: Any) -> Any:
        tags, expected_tags, expected_steps = unpack_tags(ops.convert_to_tensor(y_true), y_pred.shape[-1])
        layer, weight, t = self._layer(), self.teacher_weight, self.temperature
        chain = layer.chain(y_pred)
        soft = crf.distillation_loss(chain.divided(t), expected_tags, expected_steps)  # (batch,)
        if weight == 1:
            return t**2 * soft
        hard = -crf.log_likelihood(chain, ops.cast(tags, "int32"))  # (batch,)
        return (1 - weight) * hard + weight * t**2 * soft

    def _read(self, y_true: Any, y_pred: Any) -> tuple[Any, Any]:
        return (unpack_tags(y_true, y_pred.shape[-1])[0],) * 2

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "teacher_weight": self.teacher_weight, "temperature": self.temperature}


class _Loss(keras.losses.Loss):
    """Base of the losses without a CRF."""

    def __init__(
        self,
        teacher_weight: float = 0.9,
        temperature: float = 1.0,
        name: str | None = None,
        reduction: str = "sum_over_batch_size",
    ) -> None:
        super().__init__(name=name, reduction=reduction)
        self.teacher_weight, self.temperature = teacher_weight, temperature

    def _sum(self, scores: Any, label: Any, expected: Any) -> Any:
        """The loss of each item of scores `(..., classes)`: label `(...)`, -1 where unknown; expected as the scores."""
        t, scores = self.temperature, ops.convert_to_tensor(scores)
        soft = -ops.sum(expected * ops.log_softmax(scores / t, axis=-1), axis=-1)
        label = ops.cast(label, "int32")
        one_hot_label = ops.one_hot(label, scores.shape[-1])  # a row of zeros for -1
        hard = -ops.sum(one_hot_label * ops.log_softmax(scores, axis=-1), axis=-1)
        return (1 - self.teacher_weight) * hard + self.teacher_weight * t**2 * soft

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "teacher_weight": self.teacher_weight, "temperature": self.temperature}


@keras.saving.register_keras_serializable(package="kcrf")
class TagDistillationLoss(_Loss):
    """The loss of a softmax head on the posteriors of each tag: a mean over the positions that have a tag.

    Shapes: as `SequenceDistillationLoss`; `y_pred` holds scores before the softmax.
    """

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """The mean over the positions that have a tag, a scalar. Weights multiply the losses, as in Keras."""
        losses = self.call(*(ops.cast(x, keras.backend.floatx()) for x in (y_true, y_pred)))
        if sample_weight is not None:
            weights = ops.cast(sample_weight, losses.dtype)
            losses = losses * ops.reshape(weights, (ops.shape(losses)[0], -1))  # one or `time` of a sentence
        return ops.sum(losses)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """The part of each position in the mean, `(batch, time)`: their sum is the mean."""
        tags, expected, _ = unpack_tags(ops.convert_to_tensor(y_true), y_pred.shape[-1])
        real = ops.cast(ops.sum(expected, axis=-1) > 0.5, y_pred.dtype)  # (batch, time)
        return real * self._sum(y_pred, tags, expected) / ops.maximum(ops.sum(real), 1.0)


@keras.saving.register_keras_serializable(package="kcrf")
class LabelDistillationLoss(_Loss):
    """The loss of a classifier on its teacher. `y_true (batch, 1 + labels)`: label, or -1, and teacher's probabilities.

    >>> loss = LabelDistillationLoss(teacher_weight=0.5)
    >>> round(float(loss([[0.0, 0.5, 0.5]], [[0.0, 0.0]])), 4)  # log 2 / 2 + log 2 / 2
    0.6931
    """

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """The loss of each text, `(batch,)`."""
        y_true = ops.convert_to_tensor(y_true)
        return self._sum(y_pred, y_true[:, 0], y_true[:, 1:])


@keras.saving.register_keras_serializable(package="kcrf")
class NumberDistillationLoss(_Loss):
    """The squared errors of a regression on the labels and on the numbers of its teacher.

    `y_true (batch, 3)`: the number, the number of the teacher, and 1 where the number is known, else 0.
    """

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """The loss of each text, `(batch,)`."""
        y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
        hard = y_true[:, 2] * ops.square(y_pred[:, 0] - y_true[:, 0])
        soft = ops.square(y_pred[:, 0] - y_true[:, 1])
        return (1 - self.teacher_weight) * hard + self.teacher_weight * soft

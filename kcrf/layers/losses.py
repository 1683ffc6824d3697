"""The losses and accuracies of a CRF layer: computed with its weights, saved with it."""

from kcrf import crf
from kcrf.backend import current_stateless_scope, keras, ops, raise_if
from kcrf.layers.chain_layer import BoundToLayer, real_positions
from kcrf.layers.checks import refuse_class_weight

__all__ = ["DenseAccuracy", "DenseLoss", "SparseAccuracy", "SparseLoss", "ViterbiAccuracy"]

_NOT_GIVEN = object()
_IMPOSSIBLE = -crf.FORBIDDEN / 2  # a loss above this means that constraints or emissions forbid the labels


class SentenceLoss(BoundToLayer, keras.losses.Loss):
    """Base of the losses: one value per sentence, and an error for labels that have no likelihood.

    Labels must be integers below the number of tags. In training and evaluation by Keras (`fit`, `evaluate`), the
    constraints of the layer must allow them, too. A `ValueError` names the first sentence of the batch that breaks
    this. TensorFlow's graphs raise their own `InvalidArgumentError` with the same text, JAX a `JaxRuntimeError`. XLA on
    TensorFlow (`jit_compile`, by default "auto") cannot raise: there the loss of the sentence is NaN, so that the loss
    of the epoch is NaN, and the sentence has no gradient.
    """

    def __init__(self, layer=None, name=None, reduction="sum_over_batch_size", key=None):
        super().__init__(name=name, reduction=reduction)
        self._bind(layer, key)

    def __call__(self, y_true, y_pred, sample_weight=_NOT_GIVEN):
        """The losses `(batch,)`, or their weighted mean if `sample_weight` is given, even as None, as Keras does."""
        for accuracy in self._layer_for(y_pred).viterbi_accuracies:
            accuracy.copy_scores()
        if sample_weight is _NOT_GIVEN:
            return self._losses(y_true, y_pred)
        if sample_weight is not None:
            refuse_class_weight()
        if sample_weight is not None and len(sample_weight.shape) > 1 and sample_weight.shape[1] != 1:
            raise ValueError(
                "A CRF has one loss per sentence, so `sample_weight` must have the shape (batch,): the likelihood of a "
                "sentence is not a sum over its tokens. To leave tokens out, give them the tag -1 (unknown) or mask "
                f"them. Received: shape={tuple(sample_weight.shape)}"
            )
        if sample_weight is not None:
            sample_weight = ops.reshape(sample_weight, (-1,))
        return super().__call__(y_true, y_pred, sample_weight)

    def call(self, y_true, y_pred):
        """The losses `(batch,)` for Keras' trainer, which must not be those of forbidden labels."""
        losses = self._losses(y_true, y_pred)
        forbidden = losses > _IMPOSSIBLE  # (batch,)
        raise_if(
            ops.any(forbidden),
            "Labels must be allowed by the constraints of the CRF; `kcrf.tags.check_tags` finds those that are not, "
            "and repairs them. Received: forbidden labels in sentence {} of the batch",
            ops.argmax(forbidden),
        )
        return ops.where(forbidden, float("nan"), losses)

    def _losses(self, y_true, y_pred):
        y_pred = ops.convert_to_tensor(y_pred)
        y_true, tags = self._read(y_true, y_pred)
        wrong = tags >= y_pred.shape[-1]  # (batch, time)
        if "float" in str(y_true.dtype) and len(y_true.shape) == 2:
            wrong = wrong | (y_true != ops.floor(y_true))  # NaN is not equal to itself
        wrong = wrong & real_positions(y_pred)
        raise_if(
            ops.any(wrong),
            f"Labels must be integers below {y_pred.shape[-1]}, the number of tags, or negative if they are unknown. "
            "Received: label {} in sentence {}, position {} of the batch",
            *_first(wrong, y_true if len(y_true.shape) == 2 else tags),
        )
        losses = self._sentence_losses(ops.where(wrong, -1, tags), y_pred)
        return ops.where(ops.any(wrong, axis=1), float("nan"), losses)

    def _read(self, y_true, y_pred):
        """The labels as a tensor, `(batch, time)` where they are sparse, and as tags `(batch, time)` int32."""
        y_true = sparse_labels(y_true, y_pred)
        return y_true, ops.cast(y_true, "int32")

    def _sentence_losses(self, tags, y_pred):
        return -crf.log_likelihood(tags=tags, **self._layer().chain(y_pred))

    def get_config(self):
        return {**super().get_config(), "key": self._layer_key}


def _first(wrong, y_true):
    """The first label that is wrong, its sentence and its position, as scalar tensors."""
    index = ops.argmax(ops.reshape(wrong, (-1,)))
    time = ops.shape(wrong)[1]
    return ops.take(ops.reshape(y_true, (-1,)), index), index // time, index % time


@keras.saving.register_keras_serializable(package="kcrf")
class SparseLoss(SentenceLoss):
    """`ConditionalRandomField.sparse_loss`."""


@keras.saving.register_keras_serializable(package="kcrf")
class DenseLoss(SentenceLoss):
    """`ConditionalRandomField.dense_loss`."""

    def _read(self, y_true, y_pred):
        y_true = one_hot_labels(y_true, y_pred)
        return y_true, tags_of_one_hot(y_true)


class _Accuracy(BoundToLayer):
    name = None

    def __init__(self, layer=None, key=None):
        self._bind(layer, key)

    def __call__(self, y_true, y_pred):
        y_pred = ops.convert_to_tensor(y_pred)
        right, counted = _count(ops.argmax(y_pred, axis=-1), self._tags(y_true, y_pred), y_pred)
        return _share(ops.sum(right), ops.sum(counted))

    def _tags(self, y_true, y_pred):
        return ops.cast(sparse_labels(y_true, y_pred), "int32")

    def get_config(self):
        return {"key": self._layer_key}

    @classmethod
    def from_config(cls, config):
        return cls(**config)


@keras.saving.register_keras_serializable(package="kcrf")
class SparseAccuracy(_Accuracy):
    """`ConditionalRandomField.sparse_accuracy`."""

    name = "sparse_accuracy"


@keras.saving.register_keras_serializable(package="kcrf")
class DenseAccuracy(_Accuracy):
    """`ConditionalRandomField.dense_accuracy`."""

    name = "dense_accuracy"

    def _tags(self, y_true, y_pred):
        return tags_of_one_hot(one_hot_labels(y_true, y_pred))


@keras.saving.register_keras_serializable(package="kcrf")
class ViterbiAccuracy(BoundToLayer, keras.metrics.Metric):
    """`ConditionalRandomField.viterbi_accuracy`.

    On JAX, Keras updates metrics in a scope without the weights of the model. The loss is computed with the weights and
    may update metrics: it stores a copy of the scores in this metric, and the next update decodes with it.
    """

    def __init__(self, layer=None, name="viterbi_accuracy", dtype=None, key=None):
        super().__init__(name=name, dtype=dtype)
        self._bind(layer, key)
        self._right = self.add_weight(name="right", initializer="zeros")
        self._counted = self.add_weight(name="judged", initializer="zeros")
        self._copy, self._copied = None, False
        self._layer().viterbi_accuracies.add(self)

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Counts the positions of a batch; a `sample_weight` is `(batch,)` or `(batch, time)`."""
        layer = self._layer_for(y_pred)
        y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
        if len(y_true.shape) == 3 and y_true.shape[-1] != 1:
            tags = tags_of_one_hot(one_hot_labels(y_true, y_pred))
        else:
            tags = ops.cast(sparse_labels(y_true, y_pred), "int32")
        best = crf.viterbi(**layer.chain(y_pred, self._scores(layer, y_pred.shape[-1])))
        for total, counts in zip((self._right, self._counted), _count(best, tags, y_pred), strict=True):
            if sample_weight is not None:
                weight = ops.cast(sample_weight, "float32")
                counts = counts * (weight[:, None] if len(weight.shape) == 1 else weight)
            total.assign(total + ops.cast(ops.sum(counts), total.dtype))

    def result(self):
        """The share of right positions since the last reset, 0 if there were none."""
        return _share(*map(ops.convert_to_tensor, (self._right, self._counted)))

    def copy_scores(self):
        """Copies the scores of the layer for the next update. Called by its losses; does nothing but on JAX."""
        if current_stateless_scope() is not None and self._copy is not None:
            transitions, *boundary = self._layer().scores()
            rows = [ops.zeros_like(transitions[:1]) if x is None else x[None] for x in boundary]
            self._copy.assign(ops.stop_gradient(ops.concatenate([transitions, *rows])))  # (tags + 2, tags)
            self._copied = True

    def _scores(self, layer, size):
        scope = current_stateless_scope()
        if scope is None:
            return None
        if self._copy is None:  # Keras builds what was compiled, with shapes alone
            self._copy = self.add_weight(name="scores", shape=(size + 2, size), initializer="zeros")
        if scope.get_current_value(self._right) is not None and not self._copied:
            raise ValueError(
                "On JAX, Keras computes compiled metrics apart from the weights, so `viterbi_accuracy` needs a loss of "
                "its layer too. Compile one, or call `viterbi_accuracy` on predictions."
            )
        copy = ops.convert_to_tensor(self._copy)
        return copy[:size], copy[size], copy[size + 1]

    def save_own_variables(self, store):
        """Saves nothing: the counts are not part of a model. (A saver that walks attributes finds this metric, too.)"""

    def load_own_variables(self, store):
        """Loads nothing, see `save_own_variables`."""

    def get_config(self):
        return {**super().get_config(), "key": self._layer_key}


def _count(predicted, tags, y_pred):
    """1 where the prediction is right, and 1 where it counts: real positions of known tags; float32 `(batch, time)`."""
    counted = real_positions(y_pred) & (tags >= 0)
    right = counted & (ops.cast(predicted, "int32") == tags)
    return ops.cast(right, "float32"), ops.cast(counted, "float32")


def _share(right, counted):
    return right / ops.where(counted > 0, counted, 1.0)


def sparse_labels(y_true, y_pred):
    """Labels of shape `(batch, time)` or `(batch, time, 1)` as a tensor `(batch, time)`; Keras makes them floats."""
    y_true = _tensor(y_true)
    if len(y_true.shape) == 3 and y_true.shape[-1] == 1:
        y_true = y_true[:, :, 0]
    if len(y_true.shape) != 2:
        raise ValueError(f"Sparse tags need the shape (batch, time). Received: shape={tuple(y_true.shape)}")
    _check_length(y_true, y_pred)
    return y_true


def one_hot_labels(y_true, y_pred):
    """One-hot labels as a tensor `(batch, time, tags)`."""
    y_true = _tensor(y_true)
    if len(y_true.shape) != 3 or y_true.shape[-1] not in (None, y_pred.shape[-1]):
        raise ValueError(
            f"One-hot tags need the shape (batch, time, tags) with {y_pred.shape[-1]} tags. "
            f"Received: shape={tuple(y_true.shape)}"
        )
    _check_length(y_true, y_pred)
    return y_true


def tags_of_one_hot(y_true):
    """The tags `(batch, time)` of one-hot labels `(batch, time, tags)`, -1 (unknown) for a row of zeros."""
    return ops.where(ops.any(y_true > 0, axis=-1), ops.cast(ops.argmax(y_true, axis=-1), "int32"), -1)


def _tensor(y_true):
    try:
        tensor = ops.convert_to_tensor(y_true)
        if "string" in str(tensor.dtype):  # TensorFlow has such tensors
            raise TypeError("strings are not numbers")
        return tensor
    except (TypeError, ValueError) as error:
        raise ValueError(
            "Labels must be an array of numbers, one per position, padded to the length of the sentences. "
            f"Received: {type(y_true).__name__}, which is no such array: {error}"
        ) from None


def _check_length(y_true, y_pred):
    length, wanted = y_true.shape[1], y_pred.shape[1]
    if None not in (length, wanted) and length != wanted:
        raise ValueError(
            f"Labels must be as long as the outputs of the layer, {wanted} positions. Received: labels of {length} "
            "positions"
        )

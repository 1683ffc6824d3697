"""The losses and accuracies of a CRF layer: computed with its weights, saved beside it."""

import weakref

from kcrf import crf
from kcrf.backend import current_stateless_scope, keras, ops

__all__ = ["DenseAccuracy", "DenseLoss", "SparseAccuracy", "SparseLoss", "ViterbiAccuracy"]

LAYERS = weakref.WeakValueDictionary()  # key -> the layer most lately made with it


class OfLayer:
    """What is computed with a layer's weights and saved beside it: knows the layer by a weak reference and by a key.

    A loaded model makes its layers first, each under the key of its config, then its losses and metrics, which find
    the new layer by that key. (A strong reference would lead Keras' saver in circles.)
    """

    def _bind(self, layer, key):
        layer = layer if layer is not None else LAYERS.get(key)
        if layer is None:
            raise ValueError(f"{type(self).__name__} belongs to a ConditionalRandomField, which must be made first.")
        self._key, self._reference = layer._key, weakref.ref(layer)

    def _of_layer(self):
        layer = self._reference()
        if layer is None:
            raise ValueError(f"The ConditionalRandomField of this {type(self).__name__} no longer exists.")
        return layer


_UNWEIGHTED = object()


class SentenceLoss(OfLayer, keras.losses.Loss):
    def __init__(self, layer=None, name=None, reduction="sum_over_batch_size", key=None):
        super().__init__(name=name, reduction=reduction)
        self._bind(layer, key)

    def __call__(self, y_true, y_pred, sample_weight=_UNWEIGHTED):
        """The losses `(batch,)`; with a `sample_weight`, also None, their weighted mean, as Keras' trainer asks."""
        for accuracy in self._of_layer()._accuracies:
            accuracy.copy_scores()
        if sample_weight is _UNWEIGHTED:
            return self.call(y_true, y_pred)
        if sample_weight is not None and len(sample_weight.shape) > 1 and sample_weight.shape[1] != 1:
            raise ValueError(
                "A CRF has one loss per sentence, so `sample_weight` must have the shape (batch,): a sentence has no "
                "likelihood that falls into tokens. To leave tokens out, give them the tag -1 (unknown) or mask them. "
                f"Received: shape={tuple(sample_weight.shape)}"
            )
        if sample_weight is not None:
            sample_weight = ops.reshape(sample_weight, (-1,))
        return super().__call__(y_true, y_pred, sample_weight)

    def get_config(self):
        return {**super().get_config(), "key": self._key}


@keras.saving.register_keras_serializable(package="kcrf")
class SparseLoss(SentenceLoss):
    """`ConditionalRandomField.sparse_loss`."""

    def call(self, y_true, y_pred):
        return -crf.log_likelihood(tags=sparse(y_true), **self._of_layer()._chain(y_pred))


@keras.saving.register_keras_serializable(package="kcrf")
class DenseLoss(SentenceLoss):
    """`ConditionalRandomField.dense_loss`."""

    def call(self, y_true, y_pred):
        return -crf.log_likelihood(tags=from_one_hot(y_true), **self._of_layer()._chain(y_pred))


class _Accuracy(OfLayer):
    name = None

    def __init__(self, layer=None, key=None):
        self._bind(layer, key)

    def __call__(self, y_true, y_pred):
        y_pred = ops.convert_to_tensor(y_pred)
        right, judged = _judge(ops.argmax(y_pred, axis=-1), self._tags(y_true), y_pred)
        return _share(ops.sum(right), ops.sum(judged))

    def _tags(self, y_true):
        return sparse(y_true)

    def get_config(self):
        return {"key": self._key}

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

    def _tags(self, y_true):
        return from_one_hot(y_true)


@keras.saving.register_keras_serializable(package="kcrf")
class ViterbiAccuracy(OfLayer, keras.metrics.Metric):
    """`ConditionalRandomField.viterbi_accuracy`.

    On JAX, Keras updates metrics in a scope that lacks the weights of the model. The loss, which has them and may
    update metrics, leaves a copy of the scores here, and the next update decodes with it.
    """

    def __init__(self, layer=None, name="viterbi_accuracy", dtype=None, key=None):
        super().__init__(name=name, dtype=dtype)
        self._bind(layer, key)
        self._right, self._judged = (self.add_weight(name=x, initializer="zeros") for x in ("right", "judged"))
        self._copy, self._copied = None, False
        self._of_layer()._accuracies.add(self)

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Counts the positions of a batch; a `sample_weight` is `(batch,)` or `(batch, time)`."""
        y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
        one_hot = len(y_true.shape) == 3 and y_true.shape[-1] != 1
        tags = from_one_hot(y_true) if one_hot else sparse(y_true)
        best = crf.viterbi(**self._of_layer()._chain(y_pred, self._scores(y_pred.shape[-1])))
        for total, counted in zip((self._right, self._judged), _judge(best, tags, y_pred), strict=True):
            if sample_weight is not None:
                weight = ops.cast(sample_weight, "float32")
                counted = counted * (weight[:, None] if len(weight.shape) == 1 else weight)
            total.assign(total + ops.cast(ops.sum(counted), total.dtype))

    def result(self):
        """The share of right positions since the last reset, 0 where there were none."""
        return _share(*map(ops.convert_to_tensor, (self._right, self._judged)))

    def copy_scores(self):
        """Keeps the layer's scores for the next update; called by its losses, needed inside a stateless scope only."""
        if current_stateless_scope() is not None and self._copy is not None:
            transitions, *boundary = self._of_layer()._scores()
            rows = [ops.zeros_like(transitions[:1]) if x is None else x[None] for x in boundary]
            self._copy.assign(ops.stop_gradient(ops.concatenate([transitions, *rows])))
            self._copied = True

    def _scores(self, size):
        scope = current_stateless_scope()
        if scope is None:
            return self._of_layer()._scores()
        if self._copy is None:  # Keras builds what it compiled, and only asks for shapes
            self._copy = self.add_weight(name="scores", shape=(size + 2, size), initializer="zeros")
        if scope.get_current_value(self._right) is not None and not self._copied:
            raise ValueError(
                "On JAX, Keras computes compiled metrics apart from the weights, so `viterbi_accuracy` needs a loss of "
                "its layer beside it. Compile one, or call `viterbi_accuracy` on predictions."
            )
        copy = ops.convert_to_tensor(self._copy)
        return copy[:size], copy[size], copy[size + 1]

    def save_own_variables(self, store):
        """Saves nothing: what was counted is no part of a model. (A saver that tries attributes finds this, too.)"""

    def load_own_variables(self, store):
        """Loads nothing, see `save_own_variables`."""

    def get_config(self):
        return {**super().get_config(), "key": self._key}


def _judge(predicted, tags, y_pred):
    """Which positions are right, and which are judged: real ones of known tags; both float32 `(batch, time)`."""
    judged = real_positions(y_pred) & (tags >= 0)
    right = judged & (ops.cast(predicted, "int32") == tags)
    return ops.cast(right, "float32"), ops.cast(judged, "float32")


def real_positions(y_pred):
    """Which positions of a layer's outputs are real, `(batch, time)`: those that are not -inf throughout.

    What is NaN is real, and makes the loss NaN: training that diverged is to be seen.
    """
    return ops.any(ops.not_equal(y_pred, -float("inf")), axis=-1)


def _share(right, judged):
    return right / ops.where(judged > 0, judged, 1.0)


def sparse(y_true):
    """Tags `(batch, time)` int32; Keras hands them over as floats, some scripts with a last axis of 1."""
    y_true = ops.convert_to_tensor(y_true)
    if len(y_true.shape) == 3 and y_true.shape[-1] == 1:
        y_true = y_true[:, :, 0]
    if len(y_true.shape) != 2:
        raise ValueError(f"Sparse tags need the shape (batch, time). Received: shape={tuple(y_true.shape)}")
    return ops.cast(y_true, "int32")


def from_one_hot(y_true):
    """The tags of `(batch, time, tags)`, -1 for a row of zeros."""
    y_true = ops.convert_to_tensor(y_true)
    if len(y_true.shape) != 3:
        raise ValueError(f"One-hot tags need the shape (batch, time, tags). Received: shape={tuple(y_true.shape)}")
    return ops.where(ops.any(y_true > 0, axis=-1), ops.cast(ops.argmax(y_true, axis=-1), "int32"), -1)

"""The accuracies of a CRF layer as Keras metrics: right tokens divided by counted tokens, over all batches."""

from typing import Any

from kcrf import crf
from kcrf.backend import current_stateless_scope, is_tracing, keras, loop_ops, ops
from kcrf.layers.chain_layer import BoundToLayer, real_positions
from kcrf.layers.labels import has_rank, one_hot_labels, sparse_tags, tags_of_one_hot


class TokenAccuracy(keras.metrics.Metric):
    """The fraction of tokens with the right tag, among real positions whose tag is known.

    Created inside a compiled function it has no state: it is a function that returns the accuracy of the batch.
    """

    default_name: str

    def __init__(self, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(name=name or self.default_name, dtype=dtype)
        self._direction = "up"  # higher is better, which callbacks such as `EarlyStopping` ask, as in Keras' metrics
        self._is_function = is_tracing()
        if not self._is_function:
            self._right = self.add_weight(name="right", initializer="zeros")
            self._counted = self.add_weight(name="counted", initializer="zeros")

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        if not self._is_function:
            return super().__call__(y_true, y_pred, sample_weight=sample_weight)
        return _fraction(*map(ops.sum, self._counts(y_true, y_pred, sample_weight)))

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Counts a batch: labels `(batch, time)` or one-hot, outputs, weights `(batch,)` or `(batch, time)`."""
        right, counted = map(ops.sum, self._counts(y_true, y_pred, sample_weight))
        self._right.assign(self._right + ops.cast(right, self._right.dtype))
        self._counted.assign(self._counted + ops.cast(counted, self._counted.dtype))

    def result(self) -> Any:
        """The fraction of right tokens since the last reset, 0 if there were none."""
        return _fraction(*map(ops.convert_to_tensor, (self._right, self._counted)))

    def _counts(self, y_true: Any, y_pred: Any, sample_weight: Any) -> Any:
        """The weight of each token where the prediction is right, and where it counts; float32 `(batch, time)`."""
        y_pred = ops.convert_to_tensor(y_pred)
        tags = self._tags(y_true, y_pred)
        counted = real_positions(y_pred) & (tags >= 0)
        right = counted & (ops.cast(self._predicted(y_pred), "int32") == tags)
        counts = ops.cast(right, "float32"), ops.cast(counted, "float32")
        return counts if sample_weight is None else tuple(x * _by_token(sample_weight, ops.shape(x)[0]) for x in counts)

    def _predicted(self, y_pred: Any) -> Any:
        return ops.argmax(y_pred, axis=-1)

    def save_own_variables(self, store: Any) -> None:
        """Saves nothing: a saver that walks attributes finds this metric, too."""

    def load_own_variables(self, store: Any) -> None:
        """Loads nothing."""


@keras.saving.register_keras_serializable(package="kcrf")
class SparseAccuracy(TokenAccuracy):
    """`ConditionalRandomField.sparse_accuracy`."""

    default_name = "sparse_accuracy"

    def _tags(self, y_true: Any, y_pred: Any) -> Any:
        return sparse_tags(y_true, y_pred)


@keras.saving.register_keras_serializable(package="kcrf")
class DenseAccuracy(TokenAccuracy):
    """`ConditionalRandomField.dense_accuracy`."""

    default_name = "dense_accuracy"

    def _tags(self, y_true: Any, y_pred: Any) -> Any:
        return tags_of_one_hot(one_hot_labels(y_true, y_pred))


@keras.saving.register_keras_serializable(package="kcrf")
class ViterbiAccuracy(BoundToLayer, TokenAccuracy):
    """`ConditionalRandomField.viterbi_accuracy`.

    On JAX, Keras updates metrics without the weights of the model: the loss copies the scores here for the next update.
    """

    default_name = "viterbi_accuracy"

    def __init__(self, layer: Any = None, name: str | None = None, dtype: Any = None, key: str | None = None) -> None:
        super().__init__(name, dtype)
        self._bind(layer, key)
        self._copy, self._copied = None, False
        self._layer().viterbi_accuracies.add(self)

    def _tags(self, y_true: Any, y_pred: Any) -> Any:
        y_true = ops.convert_to_tensor(y_true)
        if has_rank(y_true) and len(y_true.shape) == 3 and y_true.shape[-1] != 1:
            return tags_of_one_hot(one_hot_labels(y_true, y_pred))
        return sparse_tags(y_true, y_pred)

    def _predicted(self, y_pred: Any) -> Any:
        layer = self._layer_for(y_pred)
        return crf.viterbi(layer.chain(y_pred, self._scores(layer, y_pred.shape[-1])))

    def copy_scores(self) -> None:
        """Copies the scores of the layer for the next update. Called by its losses; does nothing but on JAX."""
        if current_stateless_scope() is not None and self._copy is not None:
            transitions, *boundary = self._layer().scores()
            rows = [ops.zeros_like(transitions[:1]) if x is None else x[None] for x in boundary]
            self._copy.assign(ops.stop_gradient(ops.concatenate([transitions, *rows])))  # (tags + 2, tags)
            self._copied = True

    def _scores(self, layer: Any, size: int) -> tuple[Any, Any, Any] | None:
        scope = current_stateless_scope()
        if scope is None:
            return None
        if self._copy is None and not self._is_function:  # Keras builds what was compiled, with shapes alone
            self._copy = self.add_weight(name="scores", shape=(size + 2, size), initializer="zeros")
        if self._is_function or scope.get_current_value(self._right) is not None and not self._copied:
            raise ValueError(
                "On JAX, Keras computes compiled metrics apart from the weights, so `viterbi_accuracy` needs a loss of "
                "its layer too. Compile one, or call `viterbi_accuracy` on predictions."
            )
        copy = ops.convert_to_tensor(self._copy)
        return copy[:size], copy[size], copy[size + 1]

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "key": self._layer_key}


def _by_token(sample_weight: Any, batch: Any) -> Any:
    """Weights `(batch,)`, `(batch, time)` or `(batch, time, 1)` as float32 `(batch, time)` or `(batch, 1)`."""
    weight = ops.cast(sample_weight, "float32")
    if not has_rank(weight):
        return ops.reshape(weight, (batch, -1))
    if len(weight.shape) == 3:
        return weight[:, :, 0]
    return weight[:, None] if len(weight.shape) == 1 else weight


def _fraction(right: Any, counted: Any) -> Any:
    return right / loop_ops.where(counted > 0, counted, 1.0)

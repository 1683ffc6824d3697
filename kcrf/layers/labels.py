"""Labels as Keras passes them to losses and metrics: sparse `(batch, time)` or one-hot `(batch, time, tags)`."""

from typing import Any

from kcrf.backend import TensorLike, loop_ops, ops


def sparse_labels(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """Labels of shape `(batch, time)` or `(batch, time, 1)` as a tensor `(batch, time)`; Keras makes them floats."""
    y_true = _tensor(y_true)
    if not has_rank(y_true):
        return ops.reshape(y_true, ops.shape(y_pred)[:2])
    if len(y_true.shape) == 3 and y_true.shape[-1] == 1:
        y_true = y_true[:, :, 0]
    if len(y_true.shape) != 2:
        raise ValueError(f"Sparse tags need the shape (batch, time). Received: shape={tuple(y_true.shape)}")
    _check_length(y_true, y_pred)
    return y_true


def one_hot_labels(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """One-hot labels as a tensor `(batch, time, tags)`."""
    y_true = _tensor(y_true)
    if not has_rank(y_true):
        return ops.reshape(y_true, ops.shape(y_pred))
    if len(y_true.shape) != 3 or y_true.shape[-1] not in (None, y_pred.shape[-1]):
        raise ValueError(
            f"One-hot tags need the shape (batch, time, tags) with {y_pred.shape[-1]} tags. "
            f"Received: shape={tuple(y_true.shape)}"
        )
    _check_length(y_true, y_pred)
    return y_true


def has_rank(y_true: TensorLike) -> bool:
    """Whether the number of axes of a tensor is known. TensorFlow traces labels of several ranks as one of no rank."""
    return getattr(y_true.shape, "rank", 0) is not None


def sparse_tags(y_true: TensorLike, y_pred: TensorLike) -> Any:
    """The tags `(batch, time)` of sparse labels, int32; labels that are too large become the number of tags."""
    labels = ops.cast(sparse_labels(y_true, y_pred), "float32")
    return ops.cast(loop_ops.clip(labels, -1, y_pred.shape[-1]), "int32")


def tags_of_one_hot(y_true: TensorLike) -> Any:
    """The tags `(batch, time)` of one-hot labels `(batch, time, tags)`, -1 (unknown) for a row of zeros."""
    return ops.where(ops.any(y_true > 0, axis=-1), ops.cast(ops.argmax(y_true, axis=-1), "int32"), -1)


def _tensor(y_true: TensorLike) -> Any:
    if hasattr(y_true, "to_tensor"):  # TensorFlow's RaggedTensor
        received = f"a {type(y_true).__name__}, whose sentences differ in length"
        raise ValueError(f"Labels must be padded with -1, as by `y.to_tensor(-1)`. Received: {received}")
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


def _check_length(y_true: TensorLike, y_pred: TensorLike) -> None:
    length, expected = y_true.shape[1], y_pred.shape[1]
    if None not in (length, expected) and length != expected:
        raise ValueError(
            f"Labels must be as long as the outputs of the layer, {expected} positions. Received: labels of {length} "
            "positions"
        )

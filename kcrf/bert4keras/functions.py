"""Functions that bert4keras' backend module has and Keras lacks."""

from typing import Any

from kcrf.backend import keras, ops
from kcrf.layers.dense import gelu_erf, gelu_tanh, set_gelu

register = keras.saving.register_keras_serializable(package="kcrf")


def search_layer(inputs: Any, name: str) -> Any:
    """Finds a layer by its name among the layers on which a symbolic tensor or a layer depends. None if there is none.

    >>> x = keras.Input((3,))
    >>> y = keras.layers.Dense(2)(keras.layers.Dense(4, name="first")(x))
    >>> search_layer(y, "first").units
    4
    """
    if not isinstance(inputs, keras.layers.Layer) and not hasattr(inputs, "_keras_history"):
        raise ValueError(
            "`search_layer` needs a layer or a symbolic tensor. In a loss or in `call` of a layer, Keras 3 has values, "
            "which do not know their layers: find the layer before, by `model.get_layer(name)`; for a penalty on the "
            f"gradient of embeddings, call kcrf.bert4keras.adversarial.gradient_penalty(model, {name!r}, scale), and "
            f"leave the loss without it. Received: inputs={type(inputs).__name__}"
        )
    waiting, visited = [inputs if isinstance(inputs, keras.layers.Layer) else inputs._keras_history.operation], set()
    while waiting:
        layer = waiting.pop()
        if layer.name == name:
            return layer
        if id(layer) not in visited:
            visited.add(id(layer))
            waiting += layer.layers if isinstance(layer, keras.Model) else []
            waiting += [x._keras_history.operation for node in layer._inbound_nodes for x in node.input_tensors]
    return None


def batch_gather(params: Any, indices: Any) -> Any:
    """Gathers entries by indices of each row: params `(..., size, *rest)`, indices `(..., n)` -> `(..., n, *rest)`."""
    indices = ops.cast(indices, "int32")
    inner_shape = ops.shape(params)[len(indices.shape) :]
    indices = ops.reshape(indices, (*ops.shape(indices), *[1] * len(inner_shape)))
    axis = len(params.shape) - len(inner_shape) - 1
    indices = ops.broadcast_to(indices, (*ops.shape(indices)[: axis + 1], *inner_shape))
    return ops.take_along_axis(params, indices, axis=axis)


@register
def multilabel_categorical_crossentropy(y_true: Any, y_pred: Any) -> Any:
    """The loss `(...)` of multi-label classification: right classes should score above 0, all others below.

        log(1 + sum over wrong classes exp(s)) + log(1 + sum over right classes exp(-s))

    Source: Su Jianlin, kexue.fm/archives/7359; 9064 for labels `(..., classes)` between 0 and 1. Scores are taken
    before any activation; -inf marks positions without a class.
    """
    y_true = ops.cast(y_true, y_pred.dtype)
    is_class = ops.not_equal(y_pred, -float("inf"))
    scores = ops.where(is_class, y_pred, 0.0)

    def one_side(scores: Any, weights: Any) -> Any:
        counted = is_class & (weights > 0)
        terms = ops.where(counted, scores + ops.log(ops.where(counted, weights, 1.0)), -1e9)
        return ops.logsumexp(ops.concatenate([terms, ops.zeros_like(terms[..., :1])], axis=-1), axis=-1)

    return one_side(scores, 1 - y_true) + one_side(-scores, y_true)


_NO_CLASS = -1e9  # a score whose exponential is 0


@register
def sparse_multilabel_categorical_crossentropy(y_true: Any, y_pred: Any, mask_zero: bool = False) -> Any:
    """`multilabel_categorical_crossentropy` with the indices of the right classes `(..., labels)` as labels.

    With `mask_zero` the label 0 is padding, and class 0 is neither right nor wrong.

    >>> scores = [[0.0, 2.0, -1.0]]
    >>> loss = sparse_multilabel_categorical_crossentropy([[1]], scores)
    >>> bool(abs(loss - multilabel_categorical_crossentropy([[0, 1, 0]], ops.convert_to_tensor(scores))) < 1e-5)
    True
    """
    y_true, y_pred = ops.cast(ops.convert_to_tensor(y_true), "int32"), ops.convert_to_tensor(y_pred)
    scores = ops.maximum(y_pred, _NO_CLASS)
    right = batch_gather(scores, y_true)
    wrong_of = right
    if mask_zero:
        padding = ops.equal(y_true, 0)
        right, wrong_of = ops.where(padding, -_NO_CLASS, right), ops.where(padding, _NO_CLASS, right)
        scores = ops.concatenate([ops.full_like(scores[..., :1], _NO_CLASS), scores[..., 1:]], axis=-1)
    zero = ops.zeros_like(scores[..., :1])
    every = ops.logsumexp(ops.concatenate([scores, zero], axis=-1), axis=-1)
    share = ops.exp(ops.logsumexp(wrong_of, axis=-1) - every)  # of the right classes in the sum over all
    wrong = every + ops.log(ops.clip(1 - share, keras.config.epsilon(), 1))
    return wrong + ops.logsumexp(ops.concatenate([-right, zero], axis=-1), axis=-1)

"""Attributes the prediction of a classifier to its input tokens: gradient times input, integrated gradients."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kcrf.backend import backend_name, keras, ops


class GradientTimesInput:
    """The gradient of a score with respect to a symbolic tensor that it depends on, times that tensor.

    Called with three symbolic tensors: the one below `(batch, ...)`, such as embeddings; the scores `(batch, labels)`;
    and the labels `(batch, n)` whose scores are added up.

    >>> tokens, label = keras.Input((2,), dtype="int32"), keras.Input((1,), dtype="int32")
    >>> below = keras.layers.Embedding(3, 4)(tokens)
    >>> scores = keras.layers.Dense(2, use_bias=False)(ops.sum(below, axis=1))
    >>> model = keras.Model([tokens, label], GradientTimesInput()([below, scores, label]))
    >>> shares = model.predict([np.array([[1, 2]]), np.array([[0]])], verbose=0)
    >>> score = keras.Model(tokens, scores).predict(np.array([[1, 2]]), verbose=0)[0, 0]
    >>> bool(abs(shares.sum() - score) < 1e-6)  # of a linear model they sum to the score
    True
    """

    def __call__(self, inputs: Any) -> Any:
        below, scores, labels = inputs
        sources = keras.utils.get_source_inputs(scores)
        return _GradientTimesInput(_above(below, sources, scores))([below, labels, *sources])


class _GradientTimesInput(keras.layers.Layer):
    """The same, once what lies between the tensors is a model."""

    def __init__(self, above: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.above = above
        self.supports_masking = True

    def call(self, inputs: Any, mask: Any = None) -> Any:
        below, labels, *sources = inputs
        return _gradient(self.above, below, sources, labels, mask[0] if mask else None) * below

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return mask[0] if mask else None

    def compute_output_shape(self, input_shape: Any) -> Any:
        return input_shape[0]


def integrated_gradients(
    model: Any, inputs: Any, labels: Sequence[int] | np.ndarray, embedding: str = "Embedding-Token", steps: int = 20
) -> np.ndarray:
    """The contribution of each dimension of each token embedding to the score of a label, `(batch, time, size)`.

    The embeddings times the gradient of the score, averaged over the path from zero embeddings. They sum to the
    difference between the scores of the text and of zero embeddings; the norm over the last axis ranks the tokens.
    Source: Sundararajan, Taly and Yan, 2017, https://arxiv.org/abs/1703.01365.

    Args:
        model: A functional `keras.Model` with one output `(batch, labels)`.
        inputs: An array, a list in the order of `model.inputs`, or a dict by the names of the inputs.
        labels: Ints `(batch,)`: for each text, the label whose score is explained.
        embedding: The name of an embedding layer of the model itself. Defaults to "Embedding-Token".
        steps: The number of points on the path. Defaults to 20.
    """
    if len(model.outputs) != 1 or len(model.output.shape) != 2:
        raise ValueError(f"`model` must have one output (batch, labels). Received: outputs={model.outputs}")
    layer = next((layer for layer in model.layers if layer.name == embedding), None)
    if layer is None:
        raise ValueError(f"`embedding` must name a layer of the model. Received: {embedding!r}")
    inputs = _listed(inputs, model)
    labels = _checked_labels(labels, len(inputs[0]), model.output.shape[-1])
    if steps < 1:
        raise ValueError(f"`steps` must be at least 1. Received: {steps}")
    index, below = _input_of(layer, model)
    tokens, above = inputs[index], _above(below, model.inputs, model.output)
    largest, count = int(ops.convert_to_numpy(tokens).max(initial=0)), getattr(layer, "input_dim", None)
    if count is not None and largest >= count:
        raise ValueError(
            f"`inputs` must be in the order of the inputs of the model, {', '.join(x.name for x in model.inputs)}, "
            f"with numbers below {count} for {embedding}. Received: {largest}"
        )
    mask = layer.compute_mask(tokens)
    whole = layer(tokens)
    fractions = [(step + 0.5) / steps for step in range(steps)]
    gradients = [ops.convert_to_numpy(_gradient(above, whole * part, inputs, labels, mask)) for part in fractions]
    return np.mean(gradients, axis=0) * ops.convert_to_numpy(whole)


def _listed(inputs: Any, model: Any) -> list[Any]:
    names = [x.name for x in model.inputs]
    if isinstance(inputs, Mapping):
        inputs = [inputs[name] for name in names if name in inputs]
    inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    if len(inputs) != len(names):
        raise ValueError(f"`inputs` needs {', '.join(names)}. Received: {len(inputs)} of them")
    return [ops.convert_to_tensor(x) for x in inputs]


def _checked_labels(labels: Sequence[int] | np.ndarray, texts: int, count: int) -> np.ndarray:
    """The labels as an array `(texts, 1)`."""
    labels = np.asarray(labels)
    if labels.shape != (texts,) or labels.dtype.kind not in "iu" or not np.all((labels >= 0) & (labels < count)):
        received = f"shape={labels.shape}, dtype={labels.dtype}, {np.ravel(labels)[:8].tolist()}"
        raise ValueError(f"`labels` must be ints of shape ({texts},), from 0 to {count - 1}. Received: {received}")
    return labels[:, None]


def _input_of(layer: Any, model: Any) -> tuple[Any, Any]:
    """The number of the input of a model that a layer reads, and the symbolic output of the layer."""
    indices = {id(x): index for index, x in enumerate(model.inputs)}
    of_model = {id(node) for nodes in model._nodes_by_depth.values() for node in nodes}  # others read the layer, too
    nodes = [node for node in layer._inbound_nodes if id(node) in of_model and node.input_tensors]
    nodes = [node for node in nodes if id(node.input_tensors[0]) in indices]
    if len(nodes) != 1:
        raise ValueError(
            f"`embedding` must name a layer that reads one input of the model, once. Received: {layer.name!r}, which "
            f"reads inputs {len(nodes)} times"
        )
    return indices[id(nodes[0].input_tensors[0])], nodes[0].outputs[0]


def _above(below: Any, sources: Any, scores: Any) -> Any:
    model = keras.Model([below, *sources], scores)
    model.supports_masking = True
    return model


def _gradient(above: Any, below: Any, sources: Any, labels: Any, mask: Any) -> Any:
    """The gradient of the scores of the labels, `(batch, n)`, with respect to what is below."""

    def score(x: Any) -> Any:
        scores = above([x, *sources], mask=[mask, *[None] * len(sources)])
        return ops.sum(ops.take_along_axis(scores, ops.cast(labels, "int32"), axis=1))

    if backend_name() == "jax":
        import jax

        return jax.grad(score)(below)
    if backend_name() == "torch":
        import torch

        with torch.enable_grad():  # `predict` does without
            x = below.detach().requires_grad_()
            return torch.autograd.grad(score(x), x)[0]
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(below)
        value = score(below)
    return tape.gradient(value, below)

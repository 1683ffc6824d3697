"""Which tokens a classifier's decision rests on: integrated gradients."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kcrf.backend import backend_name, keras, ops

__all__ = ["integrated_gradients"]


def integrated_gradients(
    model: Any, inputs: Any, labels: Sequence[int] | np.ndarray, embedding: str = "Embedding-Token", steps: int = 20
) -> np.ndarray:
    """The share that each number of each token's embedding has in the score of a label.

    The gradient of the score, averaged on the way from embeddings of 0 to those of the text, times the embeddings.
    Over a text the values sum to the difference between the score of the text and that of embeddings of 0, up to the
    error of the average. Source: Sundararajan, Taly and Yan, 2017, "Axiomatic Attribution for Deep Networks",
    https://arxiv.org/abs/1703.01365. Needs Keras 3.

    Args:
        model: A functional `keras.Model` with one output `(batch, labels)`.
        inputs: What the model predicts on: an array, or a list of arrays for several inputs.
        labels: Ints `(batch,)`: the label of each row whose score is explained.
        embedding: The name of the layer that holds the embeddings. Defaults to "Embedding-Token", that of
            `build_transformer_model`.
        steps: The number of points on the way. Defaults to 20.

    Returns:
        An array `(batch, time, size of an embedding)`. The norm over its last axis ranks the tokens.

    Raises:
        ValueError: The layer is not one of the model's own, or the output has another shape.

    Example:

    ```python
    shares = integrated_gradients(model, [token_ids, segment_ids], [1])
    scores = np.sqrt((shares[0] ** 2).sum(axis=1))  # one for each token
    ```
    """
    if len(model.outputs) != 1 or len(model.output.shape) != 2:
        raise ValueError(f"`model` must have one output (batch, labels). Received: outputs={model.outputs}")
    layer = next((layer for layer in model.layers if layer.name == embedding), None)
    if layer is None:
        raise ValueError(f"`embedding` must name a layer of the model. Received: {embedding!r}")
    inputs = [ops.convert_to_tensor(x) for x in (inputs if isinstance(inputs, (list, tuple)) else [inputs])]
    node = layer._inbound_nodes[0]
    tokens = inputs[next(index for index, x in enumerate(model.inputs) if x is node.input_tensors[0])]
    above = keras.Model([node.outputs[0], *model.inputs], model.output)  # everything above the embeddings
    above.supports_masking = True
    mask = [layer.compute_mask(tokens), *[None] * len(inputs)]
    rows, labels = np.arange(len(tokens)), np.asarray(labels)

    def score(x):
        scores = above([x, *inputs], mask=mask)
        return ops.sum(ops.take(ops.reshape(scores, (-1,)), rows * scores.shape[1] + labels))

    whole = layer(tokens)
    shares = [(step + 0.5) / steps for step in range(steps)]
    slopes = [ops.convert_to_numpy(_GRADIENTS[backend_name()](score, whole * share)) for share in shares]
    return np.mean(slopes, axis=0) * ops.convert_to_numpy(whole)


def _on_tensorflow(function, x):
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(x)
        value = function(x)
    return tape.gradient(value, x)


def _on_torch(function, x):
    import torch

    x = x.detach().requires_grad_()
    return torch.autograd.grad(function(x), x)[0]


def _on_jax(function, x):
    import jax

    return jax.grad(function)(x)


_GRADIENTS = {"tensorflow": _on_tensorflow, "torch": _on_torch, "jax": _on_jax}

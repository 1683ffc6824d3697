"""Adversarial training on perturbed embeddings, virtual adversarial training, and a gradient penalty.

The functions change the training step of a compiled model, which then takes about twice as long, and nothing else. A
second call with the same model and layer replaces the first.
"""

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from kcrf.backend import backend_name, keras, ops
from kcrf.bert4keras.memm import MaximumEntropyMarkovModel
from kcrf.layers import ConditionalRandomField

if backend_name() == "torch":
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
elif backend_name() == "jax":
    import jax
elif backend_name() == "tensorflow":
    import tensorflow as tf


def adversarial(model: Any, embedding: str = "Embedding-Token", epsilon: float = 1.0) -> None:
    """Trains a model on adversarial perturbations of its embeddings (FGM).

    Each step moves the embedding matrix by `epsilon * g / |g|`, with g the gradient of the loss, computes all gradients
    again, and moves the matrix back before the optimizer updates. Source: Miyato, Dai and Goodfellow, 2017,
    https://arxiv.org/abs/1605.07725.

    Args:
        model: A compiled model.
        embedding: The name of the embedding layer. Defaults to "Embedding-Token".
        epsilon: The Frobenius norm of the perturbation. Defaults to 1.0.

    Example:

    ```python
    model.compile(Adam(2e-5), "sparse_categorical_crossentropy")
    adversarial(model, "Embedding-Token", epsilon=0.5)
    model.fit(batches)
    ```
    """
    variable = _embeddings(model, embedding)

    def prepare(data: Any, predict: Any, gradient: Any, normal: Any) -> tuple[Any, Any]:
        return data, _scaled(gradient(data), epsilon)

    _change_step(model, f"adversarial {embedding}", partial(_perturbed(), model, variable, prepare))


def virtual_adversarial(
    model: Any, embedding: str = "Embedding-Token", epsilon: float = 1.0, xi: float = 10.0, iterations: int = 1
) -> None:
    """Trains a model to be robust to the perturbation of its embeddings that changes its predictions most.

    This needs no labels: each step takes its own predictions as labels, finds the direction in which the loss grows
    fastest from a random start, and trains on embeddings that are moved by `epsilon` in this direction. Source: Miyato,
    Maeda, Koyama and Ishii, 2018, https://arxiv.org/abs/1704.03976.

    Args:
        model, embedding, epsilon: As for `adversarial`. The loss must compare two predictions, as "kld" does.
        xi: The norm of the perturbations in the search for the direction. Defaults to 10.0.
        iterations: The number of steps of that search. Defaults to 1.
    """
    crf = next((layer for layer in model._flatten_layers() if isinstance(layer, ConditionalRandomField)), None)
    if crf is not None:
        raise ValueError(
            "`virtual_adversarial` needs a loss that compares two predictions. "
            f"Received: a model with `{crf.name}`, whose loss compares scores with tags; `adversarial` works with it"
        )
    variable = _embeddings(model, embedding)

    def prepare(data: Any, predict: Any, gradient: Any, normal: Any) -> tuple[Any, Any]:
        x, _, _ = keras.utils.unpack_x_y_sample_weight(data)
        data, direction = (x, predict(x)), normal(tuple(variable.shape))
        for _ in range(iterations):
            direction = gradient(data, _scaled(direction, xi))
        return data, _scaled(direction, epsilon)

    _change_step(model, f"virtual {embedding}", partial(_perturbed(), model, variable, prepare))


def gradient_penalty(model: Any, embedding: str = "Embedding-Token", scale: float = 1.0) -> None:
    """Adds half the squared norm of the gradient with respect to the embedding matrix, times `scale`, to the loss.

    The loss that `fit` prints includes the penalty on TensorFlow and PyTorch, but not on JAX. A CRF has no second
    derivatives. Source: Ross and Doshi-Velez, 2018, https://arxiv.org/abs/1711.09404.
    """
    variable = _embeddings(model, embedding)
    for layer in model._flatten_layers():
        if isinstance(layer, ConditionalRandomField) and not isinstance(layer, MaximumEntropyMarkovModel):
            raise ValueError(
                "`gradient_penalty` needs a loss with second derivatives. "
                f"Received: a model with the CRF `{layer.name}`; `adversarial` works with it"
            )
    if backend_name() == "jax":
        penalize = partial(_penalized_on_jax, model, variable, scale)
        model.compute_loss_and_updates = _changed(model.compute_loss_and_updates, embedding, penalize)
    else:
        penalize = partial(_penalized, model, variable, scale)
        model.compute_loss = _changed(model.compute_loss, embedding, penalize)
    # A new function: JAX would use the old loss with a function that it has already compiled.
    another = _without_fused_attention if backend_name() == "torch" else lambda step: lambda *args: step(*args)
    _change_step(model, "gradient_penalty", another)


def _embeddings(model: Any, name: str) -> Any:
    layers = {layer.name: layer for layer in model._flatten_layers()}
    variable = getattr(layers.get(name), "embeddings", None)
    if variable is None:
        names = [layer.name for layer in layers.values() if hasattr(layer, "embeddings")]
        raise ValueError(f"`embedding` must name a layer with embeddings, one of {names}. Received: {name!r}")
    if not any(variable is other for other in model.trainable_variables):
        raise ValueError(f"The embeddings must be trained. Received: {name!r}, which is frozen")
    return variable


def _changed(method: Any, name: str, change: Any) -> Any:
    """A method with a change, which takes the place of an earlier change of this name."""
    original = changed = getattr(method, "original", method)
    changes = {**getattr(method, "changes", {}), name: change}
    for change_of_name in changes.values():
        changed = change_of_name(changed)
    changed.original, changed.changes = original, changes
    return changed


def _change_step(model: Any, name: str, change: Any) -> None:
    model.train_step = _changed(model.train_step, name, change)
    model.train_function = None  # compiled with the step before


def _scaled(direction: Any, length: Any) -> Any:
    return length * direction / (ops.sqrt(ops.sum(ops.square(direction))) + 1e-12)


@contextmanager
def _moved(add: Any, addition: Any) -> Iterator[Any]:
    with ExitStack() as additions:
        add(addition)
        additions.callback(add, -addition)
        yield additions.close


@contextmanager
def _updating_by(optimizer: Any, name: str, update: Any) -> Iterator[Any]:
    """A context in which `update(method, ...)` takes the place of a method of the optimizer."""
    outer = vars(optimizer).get(name)  # of another change of the same step
    setattr(optimizer, name, partial(update, getattr(optimizer, name)))
    try:
        yield
    finally:
        if outer is None:
            delattr(optimizer, name)
        else:
            setattr(optimizer, name, outer)


def _loss(model: Any, data: Any) -> Any:
    x, y, weight = keras.utils.unpack_x_y_sample_weight(data)
    return model.compute_loss(x=x, y=y, y_pred=model(x, training=True), sample_weight=weight, training=True)


def _step_in_place(model: Any, variable: Any, prepare: Any, step: Any) -> Any:
    """The step for TensorFlow and torch, where the embeddings are moved and moved back."""

    def add(addition: Any) -> None:
        variable.assign(variable + addition)

    def gradient(data: Any, addition: Any = 0.0) -> Any:
        with _moved(add, addition):
            if backend_name() == "tensorflow":
                with tf.GradientTape() as tape:
                    loss = _loss(model, data)
                return tf.convert_to_tensor(tape.gradient(loss, variable.value))
            model.zero_grad()
            _loss(model, data).backward()
            slope, variable.value.grad = variable.value.grad, None
            return slope

    def predict(x: Any) -> Any:
        return ops.stop_gradient(model(x, training=False))

    normal = partial(keras.random.normal, seed=keras.random.SeedGenerator())

    def train_step(data: Any) -> Any:
        data, addition = prepare(data, predict, gradient, normal)
        with _moved(add, addition) as end_move:  # before the optimizer updates: its averages are not moved

            def update(apply: Any, *args: Any, **kwargs: Any) -> Any:
                end_move()
                return apply(*args, **kwargs)

            with _updating_by(model.optimizer, "apply", update):
                return step(data)

    return train_step


def _step_on_jax(model: Any, variable: Any, prepare: Any, step: Any) -> Any:
    seed = random.randrange(2**31)

    def train_step(state: Any, data: Any) -> Any:
        trained, non_trainable, optimizer, metrics = state
        index = _index_of(model.trainable_variables, variable)

        def gradient(data: Any, addition: float = 0.0) -> Any:
            def loss_at(value: Any) -> Any:
                x, y, weight = keras.utils.unpack_x_y_sample_weight(data)
                values = _with(trained, index, value)
                options = {"training": True, "optimizer_variables": optimizer}
                return model.compute_loss_and_updates(values, non_trainable, metrics, x, y, weight, **options)[0]

            return jax.grad(loss_at)(trained[index] + addition)

        def predict(x: Any) -> Any:
            return model.stateless_call(trained, non_trainable, x, training=False)[0]

        def normal(shape: Any) -> Any:  # another draw at each step
            steps = optimizer[_index_of(model.optimizer.variables, model.optimizer.iterations)]
            return jax.random.normal(jax.random.fold_in(jax.random.key(seed), steps), shape)

        data, addition = prepare(data, predict, gradient, normal)
        moved = _with(trained, index, trained[index] + addition)

        def update(apply: Any, optimizer_variables: Any, gradients: Any, values: Any) -> Any:  # as in `_step_in_place`
            return apply(optimizer_variables, gradients, _with(values, index, trained[index]))

        with _updating_by(model.optimizer, "stateless_apply", update):
            return step((moved, non_trainable, optimizer, metrics), data)

    return train_step


def _perturbed() -> Any:
    return _step_on_jax if backend_name() == "jax" else _step_in_place


def _index_of(variables: Any, variable: Any) -> Any:
    return next(index for index, other in enumerate(variables) if other is variable)


def _with(values: Any, index: int, value: Any) -> list[Any]:
    return [*values[:index], value, *values[index + 1 :]]


def _penalized(model: Any, variable: Any, scale: float, compute_loss: Any) -> Any:
    """`compute_loss` with the penalty, for backends that differentiate what it returns."""

    def penalized(
        x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        def loss_of(predicted: Any) -> Any:
            return compute_loss(x=x, y=y, y_pred=predicted, sample_weight=sample_weight, training=training)

        loss = loss_of(y_pred)
        if not training:
            return loss
        if backend_name() == "torch":
            gradient = torch.autograd.grad(loss, variable.value, create_graph=True)[0]
        else:
            with tf.GradientTape() as tape:
                again = loss_of(model(x, training=True))
            gradient = tf.convert_to_tensor(tape.gradient(again, variable.value))
        return loss + 0.5 * scale * ops.sum(ops.square(gradient))

    return penalized


def _without_fused_attention(step: Any) -> Any:
    """The step with attention as single operations: the fused ones have no second derivatives."""

    def train_step(data: Any) -> Any:
        with sdpa_kernel(SDPBackend.MATH):
            return step(data)

    return train_step


def _penalized_on_jax(model: Any, variable: Any, scale: Any, compute: Any) -> Any:
    """`compute_loss_and_updates` with the penalty."""

    def penalized(trained: Any, *args: Any, training: bool = False, **kwargs: Any) -> Any:
        index = _index_of(model.trainable_variables, variable)

        def loss_at(value: Any) -> Any:
            return compute(_with(trained, index, value), *args, training=training, **kwargs)

        if not training:
            return compute(trained, *args, training=training, **kwargs)
        (loss, updates), gradient = jax.value_and_grad(loss_at, has_aux=True)(trained[index])
        return loss + 0.5 * scale * ops.sum(ops.square(gradient)), updates

    return penalized

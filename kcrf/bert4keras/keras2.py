"""`Loss` of bert4keras, a layer that adds a loss, and `Keras2Model`, a model with two habits of Keras 2."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from kcrf.backend import keras
from kcrf.bert4keras.k import drawing_from


class Loss(keras.layers.Layer):
    """Adds a loss to the model and returns its inputs: for losses that need more than one output and one label each.

    Labels are inputs of the model, which is compiled without a loss; its batches are `(inputs, None)` or `(inputs,)`.

    Args:
        output_axis: The index or the list of indices of the inputs to return. Defaults to None: all.

    >>> from kcrf.backend import K
    >>> class Distance(Loss):
    ...     def compute_loss(self, inputs, mask=None):
    ...         true, predicted = inputs
    ...         return K.mean(K.square(true - predicted))
    >>> labels, features = keras.Input((1,)), keras.Input((3,))
    >>> predicted = Distance(output_axis=1)([labels, keras.layers.Dense(1)(features)])
    >>> keras.Model([labels, features], predicted).compile("adam")
    """

    def __init__(self, output_axis: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.output_axis = list(output_axis) if isinstance(output_axis, (list, tuple)) else output_axis
        self.supports_masking = True

    def compute_loss(self, inputs: Any, mask: Any = None) -> Any:
        """The loss, a scalar tensor, of the inputs of the layer and their masks."""
        raise NotImplementedError("A subclass of `Loss` says in `compute_loss(self, inputs, mask=None)` what it is")

    def call(self, inputs: Any, mask: Any = None) -> Any:
        loss = self.compute_loss(inputs, mask)
        if len(getattr(loss, "shape", ())):
            raise ValueError(
                f"`compute_loss` must return a scalar, such as `K.mean(loss)`. Received: shape={tuple(loss.shape)}"
            )
        self.add_loss(loss)
        return self._chosen(inputs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return self._chosen(input_shape)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return None if mask is None else self._chosen(mask)

    def _chosen(self, values: Any) -> Any:
        if self.output_axis is None:
            return values
        if isinstance(self.output_axis, list):
            return [values[index] for index in self.output_axis]
        return values[self.output_axis]

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "output_axis": self.output_axis}


@keras.saving.register_keras_serializable(package="kcrf")
class Keras2Model(keras.Model):
    """A functional `keras.Model` with two habits of Keras 2, for scripts that rely on them.

    - It trains what was trainable when it was compiled. Keras 3 asks each layer at `fit`: a layer that is frozen for
      one model is frozen for all that share it.
    - `K.random_uniform` and others without a seed draw new numbers in each call. On JAX they need a generator that
      belongs to the model, and Keras 3 raises an error without one.
    """

    def __init__(self, inputs: Any, outputs: Any, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(inputs, outputs, name=name, **kwargs)
        self._seeds = keras.random.SeedGenerator()
        self._compiled = SimpleNamespace(flags=[])  # in a list of its own, Keras would track the layers once more

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None, **kwargs: Any) -> Any:
        with drawing_from(self._seeds):
            return super().call(inputs, training=training, mask=mask, **kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        super().compile(*args, **kwargs)
        # Layers with others inside come first, because setting their flag also sets the flags of the layers inside.
        layers = sorted(self._flatten_layers(), key=lambda layer: not layer._layers)
        self._compiled.flags = [(layer, layer.trainable) for layer in layers]

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles a loaded model; Keras leaves this to classes with a `compile` of their own."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    def fit(self, *args: Any, **kwargs: Any) -> Any:
        with self._as_compiled():
            return super().fit(*args, **kwargs)

    def train_on_batch(self, *args: Any, **kwargs: Any) -> Any:
        with self._as_compiled():
            return super().train_on_batch(*args, **kwargs)

    @contextmanager
    def _as_compiled(self) -> Iterator[Any]:
        before = [(layer, layer.trainable) for layer, _ in self._compiled.flags]
        _set(self._compiled.flags)
        try:
            yield
        finally:
            _set(before)


def _set(flags: Any) -> None:
    for layer, trainable in flags:
        layer.trainable = trainable

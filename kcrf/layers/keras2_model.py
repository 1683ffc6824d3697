"""A functional model that trains what was trainable when it was compiled, as in Keras 2."""

from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from kcrf.backend import keras
from kcrf.backend.k import drawing_from


@keras.saving.register_keras_serializable(package="kcrf")
class Keras2Model(keras.Model):
    """A functional `keras.Model` with two habits of Keras 2, for scripts that rely on them.

    - It trains what was trainable when it was compiled. Keras 3 asks each layer at `fit`, so that a layer that is
      frozen for one model is frozen for all that share it, also for those compiled before.
    - Functions such as `K.random_uniform` without a seed draw new numbers in each call of its layers. On JAX they need
      a generator of random numbers that belongs to the model, and Keras 3 raises an error without one.

    ```python
    from kcrf.bert4keras.models import Keras2Model as Model  # in place of: from keras.models import Model
    ```

    Args:
        inputs, outputs, name: As for `keras.Model(inputs, outputs, name=None)`.

    Example:

    >>> x = keras.Input((2,))
    >>> layer = keras.layers.Dense(1)
    >>> model = Keras2Model(x, layer(x))
    >>> model.compile("sgd", "mse")
    >>> layer.trainable = False  # for a model that is made from here on
    >>> before = layer.bias + 0
    >>> history = model.fit(keras.ops.ones((4, 2)), keras.ops.ones((4, 1)), verbose=0)
    >>> bool(layer.bias != before), layer.trainable
    (True, False)
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
        # Layers with others inside come first, because setting their flag sets those of the others.
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
    def _as_compiled(self):
        """A context in which the layers are trainable that were so at `compile`."""
        before = [(layer, layer.trainable) for layer, _ in self._compiled.flags]
        _set(self._compiled.flags)
        try:
            yield
        finally:
            _set(before)


def _set(flags):
    for layer, trainable in flags:
        layer.trainable = trainable

"""A separate learning rate for a layer: w is stored as w / k and read as `stored + stop_gradient((k - 1) * stored)`.

An update moves w k times as far, and the gradient norm does not depend on k, under every optimizer whose step does not
depend on the size of the weight (not LAMB, not Adafactor).
"""

import warnings
from inspect import signature
from typing import Any, Unpack

import numpy as np

from kcrf.backend import DirectCalls, Layer, Tensor, TensorLike, Wrapper, keras, ops, own_trainable_variables
from kcrf.backend.hints import LayerOptions
from kcrf.optimizers.variables import copies_in

_SAVED_AS = "lr_multiplier"


def with_learning_rate_multiplier(stored: TensorLike, multiplier: float) -> Tensor:
    """The value `multiplier * stored` with the gradient of `stored`."""
    return stored + ops.stop_gradient((multiplier - 1.0) * stored)


class LayerWithMultiplier(DirectCalls, Layer):
    """Base of layers whose own trainable weights are stored divided by `lr_multiplier`."""

    def __init__(self, lr_multiplier: float = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        _check_multiplier(lr_multiplier)
        self.lr_multiplier = lr_multiplier
        self._trained = False  # whether an optimizer may hold copies of the stored weights

    @property
    def multiplier(self) -> float:
        return float(self.lr_multiplier)

    def set_lr_multiplier(self, k: Any, optimizer: Any = None) -> None:
        """Makes the layer learn k times as fast from now on; its outputs do not change. Call `model.compile` again.

        A layer that was trained needs its `optimizer`, of Keras or kcrf, whose copies of the weights are rescaled, too.
        """
        _check_multiplier(k, "k")
        if not self.built:
            raise ValueError(f"`set_lr_multiplier` needs a layer that is built. Received: `{self.name}`, not built")
        if self._trained and optimizer is None:
            raise ValueError(
                "`set_lr_multiplier` needs the optimizer of a layer that was trained, whose copies of the weights are "
                f"rescaled, too: `{self.name}.set_lr_multiplier({k:g}, model.optimizer)`. Received: optimizer=None"
            )
        for stored in own_trainable_variables(self):
            for variable in [*copies_in(optimizer, stored), stored]:
                variable.assign(ops.convert_to_tensor(variable) * (self.multiplier / k))
        self.lr_multiplier = k

    def _add_divided_weight(self, name: str, shape: Any, initializer: Any) -> Any:
        divided = _divided(initializer, self.multiplier)
        return self.add_weight(name=name, shape=shape, initializer=divided, dtype="float32", autocast=False)

    def save_own_variables(self, store: Any) -> None:
        """Saves the multiplier with the weights."""
        super().save_own_variables(store)
        store[_SAVED_AS] = np.float32(self.lr_multiplier)

    def load_own_variables(self, store: Any) -> None:
        """Loads arrays; weights that were saved with another multiplier are rescaled, so the outputs stay the same."""
        arrays = {name: store[name] for name in store.keys()}
        saved = float(np.asarray(arrays.pop(_SAVED_AS, self.multiplier)))  # bert4keras saves none
        super().load_own_variables(arrays)
        if saved == np.float32(self.multiplier):
            return
        for stored in own_trainable_variables(self):
            stored.assign(ops.convert_to_tensor(stored) * (saved / self.multiplier))
        warnings.warn(
            f"`{self.name}` was saved with lr_multiplier={saved:g} and has {self.multiplier:g} now. Its weights were "
            "rescaled, so it computes what it did. If the optimizer was loaded, too, and keeps copies of weights (slow "
            "weights, averages, a prior), call `model.compile` again.",
            stacklevel=2,
        )

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "lr_multiplier": self.lr_multiplier}


@keras.saving.register_keras_serializable(package="kcrf")
class SetLearningRate(Wrapper):
    """Multiplies the learning rate of a layer by `multiplier`, a positive number, below 1 for slower.

    The trainable weights of the layer are stored divided by it, also in a weight file and for a regularizer.
    Mask, training mode and other state work as without the wrapper; a built layer keeps its outputs. Not for layers
    with an `lr_multiplier` of their own. Source: Su Jianlin, kexue.fm/archives/6418, which scales the gradient, too.

    >>> head = SetLearningRate(keras.layers.Dense(4), 100)
    >>> head(ops.ones((2, 8))).shape == (2, 4)
    True
    """

    def __init__(self, layer: Any, multiplier: float, **kwargs: Unpack[LayerOptions]) -> None:
        _check_multiplier(multiplier, "multiplier")
        if isinstance(layer, LayerWithMultiplier):
            raise ValueError(
                f"`{layer.name}` has a multiplier of its own, which its losses know: `{type(layer).__name__}("
                f"lr_multiplier={multiplier:g})`. Received: the layer in `SetLearningRate`"
            )
        super().__init__(layer, **{**kwargs, "dtype": "float32"}, autocast=False)  # the layer casts by its own policy
        self.multiplier = multiplier
        self.supports_masking = layer.supports_masking
        if layer.built:
            self._divide()

    def build(self, input_shape: Any = None) -> None:
        if not self.layer.built:
            super().build(input_shape)
            self._divide()
        self.built = True

    def _divide(self) -> None:
        for variable in self._faster():
            # in a symbolic call Keras 3 creates variables now and initializes them later
            if getattr(variable, "_value", variable) is None:
                variable._initializer = _divided(variable._initializer, self.multiplier)
            else:
                variable.assign(variable / self.multiplier)

    def _faster(self) -> list[Any]:
        """The trainable variables of the wrapped layer, also while they are frozen."""
        return [v for layer in self.layer._flatten_layers() for v in own_trainable_variables(layer)]

    def call(self, inputs: Any, mask: Any = None, **kwargs: Any) -> Any:
        if mask is not None and "mask" in signature(self.layer.call).parameters:
            kwargs["mask"] = mask

        def faster(stored: Any) -> Any:
            return with_learning_rate_multiplier(stored, float(self.multiplier))

        outputs, losses = _call_with_replaced_weights(self.layer, self._faster(), faster, inputs, **kwargs)
        self.add_loss(losses)
        return outputs

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return self.layer.compute_mask(inputs, mask)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return self.layer.compute_output_shape(input_shape)

    def compute_output_spec(self, inputs: Any, mask: Any = None, **kwargs: Any) -> Any:
        return self.layer.compute_output_spec(inputs, **kwargs)

    def save_own_variables(self, store: Any) -> None:
        """Saves the multiplier, by which the weights of the layer are divided."""
        super().save_own_variables(store)
        store["multiplier"] = np.float32(self.multiplier)

    def load_own_variables(self, store: Any) -> None:
        """Raises ValueError if the weights were saved with another multiplier."""
        arrays = {name: store[name] for name in store.keys()}
        saved = float(np.asarray(arrays.pop("multiplier", self.multiplier)))
        if saved != np.float32(self.multiplier):
            raise ValueError(
                f"`{self.name}` needs weights that were saved with its multiplier, {self.multiplier:g}: they are "
                f"stored divided by it. Received: weights saved with {saved:g}"
            )
        super().load_own_variables(arrays)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "multiplier": self.multiplier}


def _check_multiplier(k: Any, name: str = "lr_multiplier") -> None:
    if isinstance(k, str) or not k > 0:
        raise ValueError(f"`{name}` must be a positive number. Received: {name}={k!r}")


def _divided(initializer: Any, k: Any) -> Any:
    return lambda shape, dtype=None: initializer(shape, dtype=dtype) / k


def _call_with_replaced_weights(layer: Any, variables: Any, change: Any, inputs: Any, **kwargs: Any) -> tuple[Any, Any]:
    """Calls a layer with `change(value)` instead of the values of some variables.

    Returns the outputs, and the losses that the layer added, if Keras does not collect them itself.
    """
    values = {id(v): v.value for v in layer.variables}
    values.update({id(v): change(v.value) for v in variables})
    state = [v for v in layer.variables if id(v) in values]
    with keras.StatelessScope([(v, values[id(v)]) for v in state], collect_losses=True) as scope:
        before = [scope.get_current_value(v) for v in state]
        outputs = layer(inputs, **kwargs)
    for v, old in zip(state, before, strict=True):
        if scope.get_current_value(v) is not old:
            v.assign(scope.get_current_value(v))
    if scope.original_scope is None:
        return outputs, scope.losses
    if scope.original_scope.collect_losses:
        for loss in scope.losses:  # the inner scope has collected it
            scope.original_scope.add_loss(loss)
    return outputs, []

"""One learning rate for the model, another for a layer: exact under SGD and Adam, whatever the optimizer.

A weight w is stored as w / k and read as `stored + stop_gradient((k - 1) * stored)`: the value is w, the gradient of
what is stored is that of w. So a step moves w by k times what it would have, and a global norm sees the true gradient.
"""

import warnings
from inspect import signature

import numpy as np

from kcrf.backend import Layer, Wrapper, call_with_replaced_weights, keras, ops, own_trainable_variables

__all__ = [
    "AutoLearningRate",
    "LayerWithMultiplier",
    "SetLearningRate",
    "suggest_lr_multiplier",
    "with_learning_rate_multiplier",
]

LONG_RUN_RATE = 1e-2  # what 1e-5 x 1000 and 1e-3 x 10 share
LARGEST_RATE = 1e-1
_SAVED_AS = "lr_multiplier"
TYPICAL_TRANSITION_SCORE = 2.5  # nats: about the size of a learnt transition score


def with_learning_rate_multiplier(stored, multiplier):
    """The value `multiplier * stored`, with the gradient of `stored` itself.

    A weight that is stored divided by k and read through this learns k times as fast, under SGD as under Adam, and its
    gradient enters a global norm unscaled.

    >>> float(with_learning_rate_multiplier(ops.convert_to_tensor(0.5), 100.0))
    50.0
    """
    return stored + ops.stop_gradient((multiplier - 1.0) * stored)


def suggest_lr_multiplier(learning_rate, steps):
    """How many times faster than the rest a CRF should learn.

    The rate of the CRF is 1e-2, where two published settings meet (1e-5 x 1000, 1e-3 x 10; Su Jianlin,
    kexue.fm/archives/7196). Adam moves a weight by about its rate at each step, so in fewer than 250 steps a score
    would not get as far as 2.5, about the size of a learnt transition: there the rate is 2.5 / steps, but at most 0.1.

        k = max(1, min(max(1e-2, 2.5 / steps), 1e-1) / learning_rate), to two digits

    Args:
        learning_rate: That of the rest of the model; the highest one where a schedule changes it.
        steps: Updates of the whole run.

    Returns:
        A float of at least 1.

    Raises:
        ValueError: One of the two is not positive.

    >>> suggest_lr_multiplier(1e-5, 100_000), suggest_lr_multiplier(3e-4, 250), suggest_lr_multiplier(3e-4, 100)
    (1000.0, 33.0, 83.0)
    """
    if not (learning_rate > 0 and steps > 0):
        raise ValueError(
            "`suggest_lr_multiplier` needs a positive learning rate and number of steps. "
            f"Received: learning_rate={learning_rate}, steps={steps}"
        )
    rate = min(max(LONG_RUN_RATE, TYPICAL_TRANSITION_SCORE / steps), LARGEST_RATE)
    return float(f"{max(1.0, rate / learning_rate):.2g}")


class LayerWithMultiplier(Layer):
    """Base of layers whose own trainable weights are all stored divided by a multiplier, which may be "auto".

    With "auto" the number in force is one more weight: it may change without a new compilation of what uses it, and is
    saved and loaded together with what it divides.

    Args:
        lr_multiplier: A positive number, or "auto": 1 until `set_lr_multiplier`.

    Raises:
        ValueError: It is neither.
    """

    def __init__(self, lr_multiplier=1, **kwargs):
        super().__init__(**kwargs)
        if lr_multiplier != "auto":
            _check_multiplier(lr_multiplier)
        self.lr_multiplier = lr_multiplier
        self._multiplier = None

    @property
    def multiplier(self):
        """The learning-rate multiplier in force: a float, for "auto" a scalar tensor once the layer is built."""
        if self.lr_multiplier != "auto":
            return float(self.lr_multiplier)
        return 1.0 if self._multiplier is None else ops.convert_to_tensor(self._multiplier)

    def set_lr_multiplier(self, k):
        """Makes the layer learn k times as fast from here on. What it computes stays: what is stored is rescaled.

        With `lr_multiplier="auto"` this may happen at any time between updates. A number given at first is part of
        every compiled training step: there, call `model.compile` again.

        Args:
            k: A positive number.

        Raises:
            ValueError: k is not positive, or the layer is not built.
        """
        _check_multiplier(k, "k", "")
        if not self.built:
            raise ValueError(f"`set_lr_multiplier` needs a layer that is built. Received: `{self.name}`, not built")
        for stored in own_trainable_variables(self):
            stored.assign(ops.convert_to_tensor(stored) * (self.multiplier / k))
        if self.lr_multiplier == "auto":
            self._multiplier.assign(k)
        else:
            self.lr_multiplier = k

    def _add_divided_weight(self, name, shape, initializer):
        if self.lr_multiplier == "auto" and self._multiplier is None:
            self._multiplier = self.add_weight(
                name="lr_multiplier", shape=(), initializer="ones", trainable=False, dtype="float32", autocast=False
            )
        divided = _divided(initializer, self.multiplier)
        return self.add_weight(name=name, shape=shape, initializer=divided, dtype="float32", autocast=False)

    def save_own_variables(self, store):
        """Saves the multiplier beside the weights, which mean nothing without it."""
        super().save_own_variables(store)
        if self.lr_multiplier != "auto":
            store[_SAVED_AS] = np.float32(self.lr_multiplier)

    def load_own_variables(self, store):
        """Loads what `save_own_variables` saved; under another multiplier too, the weights in force are the file's."""
        super().load_own_variables({name: store[name] for name in store.keys() if name != _SAVED_AS})
        saved = float(np.asarray(store[_SAVED_AS])) if _SAVED_AS in store.keys() else None
        if saved is None or saved == np.float32(self.multiplier):  # bert4keras' files do not tell
            return
        for stored in own_trainable_variables(self):
            stored.assign(ops.convert_to_tensor(stored) * (saved / self.multiplier))
        warnings.warn(
            f"`{self.name}` was saved with lr_multiplier={saved:g} and has {self.multiplier:g} now: what is stored was "
            "rescaled, and the layer computes what it did when it was saved.",
            stacklevel=2,
        )

    def get_config(self):
        return {**super().get_config(), "lr_multiplier": self.lr_multiplier}


class AutoLearningRate(keras.callbacks.Callback):
    """Gives a layer made with `lr_multiplier="auto"` its number when `fit` begins.

    The number is `suggest_lr_multiplier` of the optimizer's learning rate (the highest one of a schedule) and of the
    updates that this `fit` will make. The scores of the layer stay what they were.

    Args:
        layer: A layer made with `lr_multiplier`, anywhere in the model.
        steps: Updates of the run. Defaults to those that `fit` announces.

    Raises:
        ValueError: In `fit`: the data does not tell its length, and `steps` is not given.

    Example:

        >>> layer = ConditionalRandomField(lr_multiplier="auto")                # doctest: +SKIP
        >>> model.compile("adam", loss=layer.sparse_loss)                       # doctest: +SKIP
        >>> model.fit(words, tags, callbacks=[AutoLearningRate(layer)])         # doctest: +SKIP
    """

    def __init__(self, layer, steps=None):
        super().__init__()
        self._layer, self._steps = layer, steps

    def on_train_begin(self, logs=None):
        """Sets the multiplier; called by Keras."""
        if self._steps is None and self.params["steps"] is None:
            raise ValueError("`AutoLearningRate` needs `steps` where the data has no length. Received: steps=None")
        steps = self._steps or self.params["steps"] * self.params["epochs"]
        self._layer.set_lr_multiplier(suggest_lr_multiplier(highest_rate(self.model.optimizer, steps), steps))


def highest_rate(optimizer, steps):
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)  # under mixed_float16 Keras wraps it
    schedule = optimizer._learning_rate
    if not isinstance(schedule, keras.optimizers.schedules.LearningRateSchedule):
        return float(ops.convert_to_numpy(optimizer.learning_rate))
    seen = range(0, steps + 1, max(1, steps // 100))
    return max(float(ops.convert_to_numpy(schedule(float(step)))) for step in seen)


@keras.saving.register_keras_serializable(package="kcrf")
class SetLearningRate(Wrapper):
    """Lets a layer learn `multiplier` times as fast as the rest of the model.

    Source of name and idea: Su Jianlin, kexue.fm/archives/6418; there the gradient is scaled as well, here it is not.

    The trainable weights of the layer are stored divided by the multiplier: what `layer.get_weights()`, a weight file
    and a regularizer see is the weight divided by k. Call the layer through the wrapper only. Its mask, its training
    mode and its other state (moving averages, seeds, losses) are as without the wrapper.

    Args:
        layer: Any Keras layer of one input, built or not. A built one keeps its function.
        multiplier: A positive number, below 1 for slower.

    Raises:
        ValueError: The multiplier is not a positive number.

    Example:

    >>> head = SetLearningRate(keras.layers.Dense(4), 100)
    >>> head(ops.ones((2, 8))).shape == (2, 4)
    True
    """

    def __init__(self, layer, multiplier, **kwargs):
        _check_multiplier(multiplier, "multiplier", "")
        super().__init__(layer, **{**kwargs, "dtype": "float32"}, autocast=False)  # the layer casts by its own policy
        self.multiplier = multiplier
        self.supports_masking = layer.supports_masking
        if layer.built:
            self._divide()

    def build(self, input_shape=None):
        if not self.layer.built:
            super().build(input_shape)
            self._divide()
        self.built = True

    def _divide(self):
        for variable in self._faster():
            # in a symbolic call Keras 3 makes variables now and fills them later
            if getattr(variable, "_value", variable) is None:
                variable._initializer = _divided(variable._initializer, self.multiplier)
            else:
                variable.assign(variable / self.multiplier)

    def _faster(self):
        """The variables that are made to be trained, also while they are frozen."""
        return [v for layer in self.layer._flatten_layers() for v in own_trainable_variables(layer)]

    def call(self, inputs, mask=None, **kwargs):
        if mask is not None and "mask" in signature(self.layer.call).parameters:
            kwargs["mask"] = mask

        def faster(stored):
            return with_learning_rate_multiplier(stored, float(self.multiplier))

        outputs, losses = call_with_replaced_weights(self.layer, self._faster(), faster, inputs, **kwargs)
        self.add_loss(losses)
        return outputs

    def compute_mask(self, inputs, mask=None):
        return self.layer.compute_mask(inputs, mask)

    def compute_output_shape(self, input_shape):
        return self.layer.compute_output_shape(input_shape)

    def compute_output_spec(self, inputs, mask=None, **kwargs):
        return self.layer.compute_output_spec(inputs, **kwargs)

    def get_config(self):
        return {**super().get_config(), "multiplier": self.multiplier}


def _check_multiplier(k, name="lr_multiplier", or_auto=' or "auto"'):
    if isinstance(k, str) or not k > 0:
        raise ValueError(f"`{name}` must be a positive number{or_auto}. Received: {name}={k!r}")


def _divided(initializer, k):
    return lambda shape, dtype=None: initializer(shape, dtype=dtype) / k

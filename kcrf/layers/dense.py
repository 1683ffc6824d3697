"""Dense layers with and without mixout, the GELU and the initializer of BERT, and small layers of an encoder."""

import random
from typing import Any

import numpy as np

from kcrf.backend import DirectCalls, backend_name, keras, kernel_of, linear, ops
from kcrf.checkpoints.configs import ACTIVATIONS

register = keras.saving.register_keras_serializable(package="kcrf")


def config_of(layer: Any, *names: str) -> dict[str, Any]:
    """Attributes of a layer for its config, with initializers and activations as Keras serializes them."""
    config = {name: getattr(layer, name) for name in names}
    for name, value in config.items():
        if isinstance(value, keras.initializers.Initializer):
            config[name] = keras.initializers.serialize(value)
        elif callable(value):
            config[name] = keras.activations.serialize(value)
    return config


@register
class Dropout(DirectCalls, keras.layers.Dropout):
    """Keras' dropout. A default of None keeps `training` out of the graph: Keras is faster with one tensor alone."""

    def call(self, inputs: Any, training: Any = None) -> Any:
        return super().call(inputs, training=training)


@register
class ResidualAdd(DirectCalls, keras.layers.Add):
    """The sum of two inputs of one shape, under the mask of the first."""

    def call(self, inputs: Any) -> Any:
        return inputs[0] + inputs[1]

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return mask[0] if mask else None


@register
class Dense(DirectCalls, keras.layers.Dense):
    """Keras' Dense layer, with product and bias in one operation on backends that have one."""

    def call(self, inputs: Any, training: bool = False) -> Any:
        return self._project(inputs, kernel_of(self))

    def quantize(self, mode: Any = None, type_check: bool = False, config: dict[str, Any] | None = None) -> None:
        super().quantize(mode, type_check=False, config=config)  # Keras refuses subclasses unless type_check=False

    def _project(self, inputs: Any, kernel: Any) -> Any:
        outputs = linear(inputs, kernel, self.bias)
        return outputs if self.activation is None else self.activation(outputs)


@register
class MixoutDense(Dense):
    """A Dense layer that, in training, replaces random rows of its kernel by rows of a prior, scaled to the same mean.

        kernel = (mask * kernel + (1 - mask) * prior - mixout * prior) / (1 - mixout),    mask ~ Bernoulli(1 - mixout)

    The prior is the kernel at first, or from the loaded checkpoint. It is not trained. Source: Lee, Cho, Kang 2020,
    https://arxiv.org/abs/1909.11299.
    """

    def __init__(self, units: int, mixout: float = 0.0, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(units, **kwargs)
        if not 0 <= mixout < 1:
            raise ValueError(f"`mixout` must be a probability, 0 <= mixout < 1. Received: mixout={mixout}")
        self.mixout = mixout
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def build(self, input_shape: Any) -> None:
        super().build(input_shape)
        self.prior = self.add_weight(
            name="prior",
            shape=self.kernel.shape,
            initializer=lambda shape, dtype: ops.cast(ops.copy(ops.convert_to_tensor(self.kernel)), dtype),
            trainable=False,
        )

    @property
    def variable_serialization_spec(self) -> dict[str, Any]:
        """The variables that Dense saves, and the prior."""
        return {mode: [*names, "prior"] for mode, names in super().variable_serialization_spec.items()}

    def call(self, inputs: Any, training: bool = False) -> Any:
        if not training or not self.mixout:
            return super().call(inputs)
        ones = ops.ones((self.kernel.shape[0], 1), dtype=self.compute_dtype)
        kept = keras.random.dropout(ones, self.mixout, seed=self.seed_generator)  # mask / (1 - mixout)
        return self._project(inputs, self.prior + kept * (self.kernel - self.prior))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "mixout": self.mixout, "seed": self.seed}


@register
class TruncatedNormal(keras.initializers.Initializer):
    """A normal distribution truncated at two standard deviations, drawn by NumPy.

    Keras' own lets a few values through on torch, compiles for each shape, and needs more memory.
    """

    def __init__(self, stddev: float = 0.02, seed: Any = None) -> None:
        self.stddev = stddev
        self.seed = seed
        self._seed = random.randrange(2**32) if seed is None else seed

    def __call__(self, shape: Any, dtype: Any = None) -> Any:
        rng = np.random.default_rng(self._seed)
        values = rng.standard_normal(shape, dtype="float32")
        while (outside := np.abs(values) > 2).any():
            values[outside] = rng.standard_normal(outside.sum(), dtype="float32")
        values *= self.stddev
        return ops.convert_to_tensor(values, dtype=dtype or keras.config.floatx())

    def get_config(self) -> dict[str, Any]:
        return {"stddev": self.stddev, "seed": self.seed}


def dense(units: int, mixout: float = 0.0, **kwargs: Any) -> Any:
    """`MixoutDense` if `mixout` is not 0, else `Dense`."""
    return MixoutDense(units, mixout=mixout, **kwargs) if mixout else Dense(units, **kwargs)


def fresh(initializer: Any) -> Any:
    """A copy of an initializer with a new seed: a shared one would give query, key and value the same weights."""
    config = initializer.get_config()
    return initializer.from_config({**config, "seed": None} if "seed" in config else config)


@register
class BiasAdd(keras.layers.Layer):
    """Adds a trained bias along the last axis."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        self.bias = self.add_weight(name="bias", shape=(input_shape[-1],), initializer="zeros")

    def call(self, inputs: Any) -> Any:
        return inputs + self.bias

    def compute_output_shape(self, input_shape: Any) -> Any:
        return tuple(input_shape)


_CHOSEN = {"gelu": "gelu"}  # what "gelu" means in a configuration file


def set_gelu(version: Any) -> None:
    """Sets what "gelu" means in models built from now on: "erf" (the default) or "tanh".

    A model keeps the formula with which it was built, even after saving and loading.
    """
    names = {"erf": "gelu", "tanh": "gelu_tanh"}
    if str(version).lower() not in names:
        raise ValueError(f"`version` must be 'erf' or 'tanh'. Received: version={version!r}")
    _CHOSEN["gelu"] = names[version.lower()]


def hidden_activation(name: str) -> Any:
    """The activation to use for the name in the configuration of an encoder."""
    return _CHOSEN.get(name, name)


@register
def gelu_erf(x: Any) -> Any:
    """The exact GELU. On JAX it uses erf: with Keras' erfc a training step of BERT takes 5 % longer on a CPU."""
    if backend_name() == "jax":
        return 0.5 * x * (1 + ops.erf(x * 0.5**0.5))
    return keras.activations.gelu(x, approximate=False)


@register
def gelu_tanh(x: Any) -> Any:
    """GELU approximated by tanh, as in the first release of BERT."""
    return keras.activations.gelu(x, approximate=True)


def activation_of(name: str) -> Any:
    """The activation function that a configuration names, or Keras' name of it."""
    plain = ACTIVATIONS[name]
    return {"gelu": gelu_erf, "gelu_tanh": gelu_tanh}.get(plain, plain)

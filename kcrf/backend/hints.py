"""Hints for Keras, which has none: with `Any` in their place, type checkers would find no misspelled name."""

from typing import Any, Protocol, TypeAlias, TypedDict

TensorLike: TypeAlias = Any  # a tensor of the running backend, or what can become one: an array, a list


class Tensor(Protocol):
    """A tensor of the running backend."""

    shape: Any
    dtype: Any

    def __getattr__(self, name: str) -> Any: ...
    def __getitem__(self, index: Any) -> "Tensor": ...
    def __iter__(self) -> Any: ...
    def __len__(self) -> int: ...
    def __float__(self) -> float: ...
    def __array__(self, *args: Any) -> Any: ...
    def __neg__(self) -> "Tensor": ...
    def __add__(self, other: Any) -> "Tensor": ...
    def __sub__(self, other: Any) -> "Tensor": ...
    def __mul__(self, other: Any) -> "Tensor": ...
    def __rmul__(self, other: Any) -> "Tensor": ...
    def __truediv__(self, other: Any) -> "Tensor": ...


class LayerOptions(TypedDict, total=False):
    """The arguments of every Keras layer."""

    name: str | None
    trainable: bool
    dtype: Any


class KeyedLayerOptions(LayerOptions, total=False):
    """Also the key by which losses find the layer that they were saved with."""

    key: str | None


class Layer:
    """A layer of Keras, with the names that users and kcrf's layers need."""

    name: str
    built: bool
    trainable: bool
    supports_masking: bool
    dtype_policy: Any
    compute_dtype: str
    input: Any
    output: Any
    weights: list[Any]
    variables: list[Any]
    trainable_weights: list[Any]
    add_weight: Any
    add_loss: Any
    get_weights: Any
    set_weights: Any
    compute_output_spec: Any
    register_state_dict_post_hook: Any
    register_load_state_dict_pre_hook: Any

    def __init__(self, **kwargs: Any) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        raise NotImplementedError

    def build(self, input_shape: Any) -> None: ...
    def save_own_variables(self, store: Any) -> None: ...
    def load_own_variables(self, store: Any) -> None: ...
    def get_config(self) -> dict[str, Any]:
        raise NotImplementedError


class Model(Layer):
    """A model of Keras: `compile`, `fit`, `predict`, `get_layer` and others have no hints."""

    inputs: list[Any]
    outputs: list[Any]
    layers: list[Any]

    def __getattr__(self, name: str) -> Any: ...

"""The base of CRF layers, and of the losses, metrics and decoders that compute with their scores."""

import uuid
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from kcrf import backend
from kcrf.backend import TensorLike, backend_name, constant_beside, keras, layer_behind, ops, own_trainable_variables
from kcrf.crf import Chain
from kcrf.layers.learning_rates import LayerWithMultiplier

_LAYERS = weakref.WeakValueDictionary()  # (key in a config, is loaded) -> the layer created last, for loading
MASKED = np.float32("-inf")
_OTHER_NAMES = {  # of keras-contrib, TensorFlow Addons and others
    **dict.fromkeys(("loss", "loss_function", "sparse_categorical_crossentropy"), "sparse_loss"),
    **dict.fromkeys(("accuracy", "marginal_acc"), "sparse_accuracy"),
    "viterbi_acc": "viterbi_accuracy",
    **dict.fromkeys(("transitions", "transition_params", "chain_kernel"), "trans"),
}


class ChainLayer(LayerWithMultiplier):
    """Passes emissions through with masked positions at -inf; subclasses define `scores`.

    Losses and metrics that are saved with the layer find it by `key`, which their configs have, too.
    """

    def __init__(self, lr_multiplier: float = 1, key: str | None = None, **kwargs: Any) -> None:
        super().__init__(lr_multiplier, **kwargs, autocast=False)
        self.supports_masking = True
        self.key = uuid.uuid4().hex
        self.is_loaded = key is not None
        self.mask_is_computed = False
        self.viterbi_accuracies = weakref.WeakSet()
        self._output, self._is_traced = None, False  # the latest output, and whether JAX traced the weights with it
        if backend_name() == "torch":
            self.register_state_dict_post_hook(_shorten_keys)
            self.register_load_state_dict_pre_hook(_lengthen_keys)
        _LAYERS[self.key, False] = self
        if self.is_loaded:
            _LAYERS[key, True] = self

    if not TYPE_CHECKING:  # with it, type checkers would take every name

        def __getattr__(self, name: str) -> Any:
            if name in _OTHER_NAMES:
                raise AttributeError(f"{type(self).__name__} has no {name!r}: use `{_OTHER_NAMES[name]}`")
            inherited = getattr(super(), "__getattr__", None)
            if inherited is not None:  # on torch a layer is a torch.nn.Module
                return inherited(name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def call(self, inputs: Any, mask: Any = None, training: bool = False) -> Any:
        if mask is not None and len(mask.shape) != 2:
            raise ValueError(
                f"`{self.name}` needs a mask of shape (batch, time); it is not a loss, but has one: "
                f"`loss=layer.sparse_loss`. Received: mask of shape {tuple(mask.shape)}"
            )
        self._trained = self._trained or bool(training)
        emissions = ops.cast(inputs, "float32")
        if mask is not None:
            emissions = ops.where(ops.cast(mask, "bool")[:, :, None], emissions, constant_beside(emissions, MASKED))
        self._output, self._is_traced = backend.weakref_to(emissions), self._has_traced_weights()
        return emissions

    def returned(self, y_pred: TensorLike) -> bool:
        """Whether `y_pred` is the tensor that the latest call of the layer returned."""
        return self._output is not None and self._output() is y_pred

    def _has_traced_weights(self) -> bool:
        return any(backend.is_traced(variable) for variable in own_trainable_variables(self))

    def check_weights(self, y_pred: TensorLike) -> None:
        """Refuses outputs that were computed in a scope with other weights than the layer has now, as JAX allows."""
        if self.returned(y_pred) and self._is_traced and not self._has_traced_weights():
            raise ValueError(
                f"On JAX, what is computed with `{self.name}` after `stateless_call` needs the same weights: compute "
                "it within `with keras.StatelessScope(zip(model.trainable_variables, trainable_variables)):`. "
                "Received: weights that are not traced, so that they would not be trained"
            )

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        return None  # Keras would multiply a loss per sentence by a mask per position

    def compute_output_shape(self, input_shape: Any) -> Any:
        return input_shape

    def compute_output_spec(self, inputs: Any, mask: Any = None, training: bool = False) -> Any:
        self.mask_is_computed |= mask is not None and not isinstance(layer_behind(mask), keras.layers.Layer)
        return keras.KerasTensor(inputs.shape, dtype="float32")

    def scores(self) -> Any:
        """The transitions `(tags, tags)` and the starts and ends `(tags,)`, each None if all tags score the same."""
        raise NotImplementedError

    def chain(self, y_pred: TensorLike, scores: Any = None) -> Any:
        """The outputs of the layer, on TensorFlow also a `RaggedTensor` of `predict`, with `scores()` or others."""
        if scores is None:
            if not self.built:
                raise ValueError(f"`{self.name}` has no scores before it is built: call it, or its model, once")
            self.check_weights(y_pred)
        if hasattr(y_pred, "to_tensor"):
            y_pred = y_pred.to_tensor(float("-inf"))  # masked, as the layer masks
        y_pred = ops.convert_to_tensor(y_pred)
        transitions, start, end = scores or self.scores()
        return Chain(y_pred, real_positions(y_pred), transitions, start, end)

    def get_config(self) -> dict[str, Any]:
        if backend.saves_as_hdf5() and self.mask_is_computed:
            raise ValueError(
                f"A model with `{self.name}` and a mask needs the file format .keras: Keras cannot load the operation "
                "that computes the mask from HDF5. Use `model.save('model.keras')`, or `model.save_weights("
                "'model.weights.h5')`. Received: a file in HDF5 format; Keras has created it, and it is empty"
            )
        return {**super().get_config(), "key": self.key}


class BoundToLayer:
    """Base of objects that compute with the scores of a `ChainLayer` and are saved with it.

    The reference is weak: a strong one would lead Keras' saver in circles. An object from a config belongs to the layer
    that was last created from a config with the same key: Keras creates layers right before losses and metrics.
    """

    def _bind(self, layer: Any, key: str | None) -> None:
        if layer is None:
            layer = _LAYERS.get((key, True)) or _LAYERS.get((key, False))
        if layer is None:
            raise ValueError(
                f"{type(self).__name__} belongs to a ConditionalRandomField, which must be created first. "
                f"Received: layer=None, key={key!r}"
            )
        self._reference, self._layer_key = weakref.ref(layer), layer.key

    def belongs_to(self, layer: Any) -> bool:
        """Whether this object computes with the scores of a layer."""
        return self._reference() is layer

    def _layer(self) -> Any:
        layer = self._reference()
        if layer is None:
            raise ValueError(f"The ConditionalRandomField of this {type(self).__name__} no longer exists.")
        return layer

    def _layer_for(self, y_pred: TensorLike) -> Any:
        """The layer, after a check that `y_pred` is not the output of another one, as far as that can be known."""
        layer, source = self._layer(), layer_behind(y_pred)
        if not isinstance(source, ChainLayer) and not layer.returned(y_pred):
            source = next((other for other in list(_LAYERS.values()) if other.returned(y_pred)), None)
        if isinstance(source, ChainLayer) and source is not layer:
            raise ValueError(
                f"{type(self).__name__} belongs to another layer than the outputs it was given. Use that of the layer "
                f"in the same model, as `model.get_layer({source.name!r}).sparse_loss`. Received: outputs of "
                f"`{source.name}`, and `{layer.name}`"
            )
        return layer


def real_positions(y_pred: TensorLike) -> Any:
    """Which positions of outputs are real, `(batch, time)` bool: not -inf for all tags. NaN counts as real."""
    return ops.any(ops.not_equal(y_pred, constant_beside(y_pred, MASKED)), axis=-1)


def _shorten_keys(layer: Any, state: Any, prefix: str, _: Any) -> None:
    """Names entries of torch's `state_dict` by attributes ("trans"): Keras' keys contain an automatic name."""
    for path in [variable.path for variable in own_trainable_variables(layer)]:
        key = f"{prefix}_torch_params.{path}"
        if key in state:
            state[prefix + path.rpartition("/")[2]] = state.pop(key)


def _lengthen_keys(layer: Any, state: Any, prefix: str, *_: Any) -> None:
    paths = {variable.path.rpartition("/")[2]: variable.path for variable in own_trainable_variables(layer)}
    for key in [key for key in state if key.startswith(prefix)]:
        name = key.removeprefix(prefix).removeprefix("_torch_params.").rpartition("/")[2]
        if name in paths:
            state[f"{prefix}_torch_params.{paths[name]}"] = state.pop(key)

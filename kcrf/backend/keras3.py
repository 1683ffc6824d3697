"""Keras 3 and what only its internals know. `kcrf.bert4keras.tf_keras` has the same names for Keras 2."""

import itertools
from functools import partial
from typing import Any

from kcrf.backend.choice import no_backend

try:
    import keras
except ModuleNotFoundError as error:
    raise no_backend(error) from None
from keras import ops, tree
from keras.src.backend import get_autocast_scope
from keras.src.backend.common import global_state
from keras.src.backend.common.masking import get_keras_mask, set_keras_mask
from keras.src.models.functional import Functional
from keras.src.trainers.data_adapters.data_adapter import DataAdapter

if keras.backend.backend() == "torch":
    import torch
    from torch.nn.modules.module import _has_any_global_hook

Layer = keras.layers.Layer
Optimizer = keras.optimizers.Optimizer
Wrapper = keras.layers.Wrapper


def current_stateless_scope() -> Any:
    """The current `keras.StatelessScope`, which contains the values of variables, or None."""
    with keras.StatelessScope(initialize_variables=False) as scope:
        return scope.original_scope


def is_training() -> Any:
    """Whether the current layer is called for training; None outside of layers, or if `training` was not passed."""
    context = global_state.get_global_attribute("current_call_ctx")
    return None if context is None else context.training


def computes_shapes_only() -> bool:
    """Whether the current layer is called on symbolic tensors, to infer the shapes of its outputs."""
    return global_state.get_global_attribute("symbolic_scope") is not None


def saves_as_hdf5() -> bool:
    """Whether Keras is saving a model as an HDF5 file, and asks layers for their configs."""
    return bool(global_state.get_global_attribute("use_legacy_config"))


_Mixin: Any = object  # mixed into layers of Keras, which have no hints
_GIVEN = {"mask", "training"}  # by a model to its layers


class DirectCalls(_Mixin):
    """Mixin for layers with one input or a list of inputs, whose `call` may have `mask` and `training`.

    On torch, Keras binds arguments, converts inputs, opens scopes and walks nested structures, .3 ms a layer: most of
    the forward pass of a small BERT. For a built layer, called by a model on tensors of its dtype, none of this has an
    effect but `training`, the mask and the call, which is all that is done here. In any other case Keras does it.

    Under `keras.RematScope`, Keras traces the arguments of `call`, which JAX cannot do with `training`, and draws new
    random numbers for the second pass.
    """

    def rematerialized_call(self, layer_call: Any, *args: Any, **kwargs: Any) -> Any:
        chosen = super().rematerialized_call(layer_call, *args, **kwargs)
        is_whole = chosen is not layer_call and self._remat_mode.mode != "activations"
        return partial(_rematerialized, self, layer_call) if is_whole else chosen

    if keras.backend.backend() == "torch":

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            context = global_state.get_global_attribute("current_call_ctx")  # None outside of a model
            if context is None or len(args) != 1 or not _GIVEN.issuperset(kwargs) or not _is_plain(self, args[0]):
                return super().__call__(*args, **kwargs)
            (inputs,), parameters, mask = args, self._call_signature.parameters, kwargs.get("mask")
            if mask is None:
                several = isinstance(inputs, (list, tuple))
                mask = [get_keras_mask(x) for x in inputs] if several else get_keras_mask(inputs)
            training = kwargs["training"] if "training" in kwargs else context.get_value("training")
            context.set_value("training", training)  # for layers inside
            options = {"mask": mask, "training": training}
            outputs = self.call(inputs, **{n: x for n, x in options.items() if n in parameters and x is not None})
            if self.supports_masking and get_keras_mask(outputs) is None:
                mask = self.compute_mask(inputs, mask)
                if mask is not None:
                    set_keras_mask(outputs, mask)
            return outputs


def _is_plain(layer: Any, inputs: Any) -> bool:
    """Whether a call needs nothing of Keras: no building, casting, hooks, quantization or rematerialization."""
    policy, scope = layer.dtype_policy, get_autocast_scope()
    dtype = policy.compute_dtype
    remat = layer._remat_mode
    if remat and (remat.mode != "list_of_layers" or layer.name in remat.layer_names):
        return False
    if not layer.built or layer.activity_regularizer or policy.quantization_mode:
        return False
    if (scope.dtype if scope and layer.autocast else policy.variable_dtype) != dtype:
        return False
    hooks = (layer._forward_hooks, layer._forward_pre_hooks, layer._backward_hooks, layer._backward_pre_hooks)
    if any(hooks) or _has_any_global_hook():
        return False
    expected, inputs = getattr(torch, dtype), inputs if isinstance(inputs, (list, tuple)) else (inputs,)
    return all(isinstance(x, torch.Tensor) and x.dtype == expected for x in inputs)


def bias_of_mask(mask: Any, dtype: Any, masked: float) -> Any:
    """A mask `(batch, time)` as numbers that attention adds on torch: one tensor for all layers within a call."""
    context = global_state.get_global_attribute("current_call_ctx")
    kept = getattr(context, "kcrf_biases", ())
    bias = next((bias for known, bias in kept if known is mask and bias.dtype == dtype), None)
    if bias is None:
        bias = torch.where(mask[:, None, None, :], 0.0, masked).to(dtype)
        if context is not None:
            context.kcrf_biases = (*kept, (mask, bias))
    return bias


def _rematerialized(layer: Any, layer_call: Any, *args: Any, **options: Any) -> Any:
    """Calls a layer, whose intermediate results are computed again for the gradient, with the same random numbers."""
    generators = [generator for inner in layer._flatten_layers() for generator in inner._seed_generators]
    values = [(generator.state, ops.copy(generator.state.value)) for generator in generators]
    for generator in generators:
        generator.next()
    if keras.backend.backend() == "jax":  # this scope hides the trainer's scope
        states = {id(generator.state) for generator in generators}
        values += [(v, v.value) for v in layer.variables if id(v) not in states]

    def compute(*args: Any) -> Any:
        with keras.StatelessScope(values):
            return layer_call(*args, **options)

    return keras.remat(compute)(*args)


def kernel_of(dense: Any) -> Any:
    """The kernel of a Dense layer. Keras looks for weights of several formats, which takes a layer of BERT .05 ms."""
    return dense.kernel if dense.lora_enabled or dense.quantization_mode else dense._kernel


def batch_stream(batches: Any) -> Any:
    """Batches for `fit` from an iterator. Keras refuses lists and changing lengths from a generator on TensorFlow."""
    return _BatchStream(batches)


class _BatchStream(DataAdapter):
    num_batches = batch_size = has_partial_batch = partial_batch_size = None

    def __init__(self, batches: Any) -> None:
        self._batches = iter(batches)

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return next(self._batches)

    def get_numpy_iterator(self) -> Any:
        return map(_as_tuples, self._batches)

    get_jax_iterator = get_numpy_iterator

    def get_tf_dataset(self) -> Any:
        import tensorflow as tf

        first_two = list(itertools.islice(self._batches, 2))
        if not first_two:
            raise ValueError("A stream of batches needs one at least. Received: none")
        self._batches = itertools.chain(first_two, self._batches)
        signature = tree.map_structure(
            lambda one, other: tf.TensorSpec(_common_shape(one, other), one.dtype),
            *map(_as_tuples, (first_two[0], first_two[-1])),
        )
        return tf.data.Dataset.from_generator(self.get_numpy_iterator, output_signature=signature).prefetch(2)

    def get_torch_dataloader(self) -> Any:
        from torch.utils.data import DataLoader, IterableDataset

        stream = self.get_numpy_iterator()

        class Stream(IterableDataset):
            def __iter__(self) -> Any:
                return stream

        return DataLoader(Stream(), batch_size=None, collate_fn=lambda x: tree.map_structure(ops.convert_to_tensor, x))


def _as_tuples(batch: Any) -> Any:
    """A batch with tuples instead of lists, without labels of None. A batch that is not a tuple is the inputs."""
    batch = batch if isinstance(batch, tuple) else (batch,)
    return tree.lists_to_tuples(batch[:1] if all(part is None for part in batch[1:]) else batch)


def _common_shape(first: Any, second: Any) -> list[Any]:
    """The static shape of all batches, from the first two: None for the batch size, and for a length other than 1."""
    sizes = enumerate(zip(first.shape, second.shape, strict=True))
    return [None if axis == 0 or one != other or (axis == 1 and one > 1) else one for axis, (one, other) in sizes]

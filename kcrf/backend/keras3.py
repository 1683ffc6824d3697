"""Keras 3 and what only its internals know. `kcrf.bert4keras.tf_keras` has the same names for Keras 2."""

import itertools
from typing import Any

from kcrf.backend.choice import no_backend

try:
    import keras
except ModuleNotFoundError as error:
    raise no_backend(error) from None
from keras import ops, tree
from keras.src.backend.common import global_state
from keras.src.models.functional import Functional
from keras.src.trainers.data_adapters.data_adapter import DataAdapter

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

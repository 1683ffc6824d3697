"""The functions of `kcrf.backend` for Keras 3. Imported by `host` only; `tf_keras` has the same names for Keras 2."""

import itertools

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


def current_stateless_scope():
    """The current `keras.StatelessScope`, which contains the values of variables, or None."""
    with keras.StatelessScope(initialize_variables=False) as scope:
        return scope.original_scope


def is_training():
    """Whether the current layer is called for training; None outside of layers, or if `training` was not passed."""
    context = global_state.get_global_attribute("current_call_ctx")
    return None if context is None else context.training


def computes_shapes_only():
    """Whether the current layer is called on symbolic tensors, to infer the shapes of its outputs."""
    return global_state.get_global_attribute("symbolic_scope") is not None


def keep_state_dict_keys(layer):
    """On torch, names the entries of a layer in `state_dict` by attributes: Keras' keys contain an automatic name.

    The keys are then the names of the weights, such as "trans". Keras' keys can still be loaded.
    """
    if keras.backend.backend() != "torch":
        return
    layer.register_state_dict_post_hook(_shorten_keys)
    layer.register_load_state_dict_pre_hook(_lengthen_keys)


def _shorten_keys(layer, state, prefix, _):
    for path in [variable.path for variable in own_trainable_variables(layer)]:
        key = f"{prefix}_torch_params.{path}"
        if key in state:
            state[prefix + path.rpartition("/")[2]] = state.pop(key)


def _lengthen_keys(layer, state, prefix, *_):
    paths = {variable.path.rpartition("/")[2]: variable.path for variable in own_trainable_variables(layer)}
    for key in [key for key in state if key.startswith(prefix)]:
        name = key.removeprefix(prefix).removeprefix("_torch_params.").rpartition("/")[2]
        if name in paths:
            state[f"{prefix}_torch_params.{paths[name]}"] = state.pop(key)


def saves_as_hdf5():
    """Whether Keras is saving a model as an HDF5 file, and asks layers for their configs."""
    return bool(global_state.get_global_attribute("use_legacy_config"))


def layer_behind(tensor):
    """The layer whose output a symbolic tensor is, also inside nested models; None for any other tensor."""
    history = getattr(tensor, "_keras_history", None)
    layer = None if history is None else history.operation
    if isinstance(layer, keras.Model) and len(getattr(layer, "outputs", None) or ()) > history.tensor_index:
        return layer_behind(layer.outputs[history.tensor_index])
    return layer


def mask_ignores_inputs(mask):
    """Whether a symbolic mask is True everywhere, because Keras' Concatenate got inputs with and without a mask.

    Keras computes it as any(concatenate([mask, ones_like(input without a mask)])).
    """
    pending = [(mask, ("", ""))]  # tensors, each with the names of the last two operations after it
    while pending:
        tensor, path = pending.pop()
        history = getattr(tensor, "_keras_history", None)
        if history is None or isinstance(history.operation, keras.layers.Layer):
            continue
        name = type(history.operation).__name__
        if name == "OnesLike" and path == ("Any", "Concatenate"):
            return True
        path = (path[1], name)
        pending.extend((x, path) for x in history.operation._inbound_nodes[history.node_index].input_tensors)
    return False


def called_with_mask(layer):
    """Whether a layer was called on symbolic tensors with a mask."""
    return any(node.arguments.kwargs.get("mask") is not None for node in layer._inbound_nodes)


def compiled_with(model):
    """The `loss` and the list of `metrics` that were passed to `compile`."""
    compiled = getattr(model, "_compile_metrics", None)
    metrics = [] if compiled is None else [compiled._user_metrics, compiled._user_weighted_metrics]
    return getattr(model, "loss", None), metrics


def index_in_optimizer(optimizer, variable):
    """The index of a variable in the lists of an optimizer. None if the optimizer is not built or does not train it."""
    trained = optimizer._trainable_variables if optimizer.built else []
    return next((index for index, other in enumerate(trained) if other is variable), None)


def path_of(variable):
    """The path of a Keras variable; the name of any other variable."""
    return getattr(variable, "path", variable.name)


def own_trainable_variables(layer):
    """The variables created by the layer itself with `trainable=True`, whether or not the layer is frozen now."""
    return layer._trainable_variables


def backend_variable(variable):
    """The backend's variable of a Keras variable."""
    return variable.value


def training_loss(model, x, y, y_pred, sample_weight):
    """The loss of a batch in training, with the losses that layers add."""
    return model.compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=True)


def call_with_replaced_weights(layer, variables, change, inputs, **kwargs):
    """Calls a layer with `change(value)` instead of the values of some of its variables.

    Returns:
        The outputs, and a list of the losses that the layer added, if Keras does not collect them itself.
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


def as_keras3_optimizer(optimizer_class):
    """Returns the class itself, which has the interface of Keras 3."""
    return optimizer_class


def batch_stream(batches):
    """An infinite stream of batches that `fit` accepts as data, and an iterator over the batches.

    Keras 3 also accepts a generator, but on TensorFlow its batches must not contain lists, all batches must have one
    length if the first two happen to have the same, and Keras warns that it does not shuffle.
    """
    return _BatchStream(batches)


class _BatchStream(DataAdapter):
    num_batches = batch_size = has_partial_batch = partial_batch_size = None

    def __init__(self, batches):
        self._batches = iter(batches)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._batches)

    def get_numpy_iterator(self):
        return map(_as_tuples, self._batches)

    get_jax_iterator = get_numpy_iterator

    def get_tf_dataset(self):
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

    def get_torch_dataloader(self):
        from torch.utils.data import DataLoader, IterableDataset

        stream = self.get_numpy_iterator()

        class Stream(IterableDataset):
            def __iter__(self):
                return stream

        return DataLoader(Stream(), batch_size=None, collate_fn=lambda x: tree.map_structure(ops.convert_to_tensor, x))


def _as_tuples(batch):
    """A batch with tuples instead of lists, without labels of None. A batch that is not a tuple is the inputs."""
    batch = batch if isinstance(batch, tuple) else (batch,)
    return tree.lists_to_tuples(batch[:1] if all(part is None for part in batch[1:]) else batch)


def _common_shape(first, second):
    """The static shape of all batches, from the first two: None for the batch size, and for a length other than 1."""
    sizes = enumerate(zip(first.shape, second.shape, strict=True))
    return [None if axis == 0 or one != other or (axis == 1 and one > 1) else one for axis, (one, other) in sizes]

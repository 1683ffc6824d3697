"""Finds mistakes in how a model with a CRF is built, compiled and fitted, which Keras accepts in silence.

Errors are `ValueError`s; what is only probably a mistake is a `UserWarning`, once for each layer.
"""

import warnings
import weakref
from typing import Any

import numpy as np

from kcrf.backend import TensorLike, input_names, keras, layer_behind
from kcrf.layers.chain_layer import ChainLayer
from kcrf.layers.losses import SentenceLoss

_OF_OTHER_LAYERS = {  # keras-contrib, TensorFlow Addons, pytorch-crf, keras-crf
    **dict.fromkeys(
        ("units", "num_tags", "num_classes", "output_dim", "use_kernel", "use_bias"),
        "put `keras.layers.Dense(number_of_tags)` before the layer, which has no kernel of its own",
    ),
    **dict.fromkeys(
        ("sparse_target", "learn_mode"), "compile `loss=layer.sparse_loss`, or for one-hot tags `dense_loss`"
    ),
    "test_mode": "call `layer.decode` or `layer.marginals` on what `predict` returns",
    "batch_first": "inputs are always (batch, time, tags)",
}
_WARNINGS = {  # by subject
    "recurrent": "`{layer}` needs one score for each tag: put `keras.layers.Dense(number_of_tags)` before it. "
    "Received: the output of `{before}`, {size} numbers for each position",
    "activation": "`{layer}` needs one score of any size per tag: put `keras.layers.Dense(number_of_tags)`, without "
    "activation, before it; it has no kernel of its own. Received: the output of `{before}` with the activation "
    "{activation}, {size} numbers for each position",
    "softmax": "`{layer}` needs scores of any size, such as a Dense layer without activation gives; with "
    "probabilities, which differ by 1 at most, it learns little. Received: {received}",
    "mask": "The mask of `{layer}` is True everywhere: the model concatenates inputs with and without a mask, and "
    "Keras takes the positions for real that one of them does not mask. Call the layer with a mask, as in `layer(x, "
    "mask=keras.ops.not_equal(words, 0))`.",
    "unused mask": "`{layer}` has no mask, so it trains and decodes padding as a part of the sentences: `{name}`, an "
    "input of the model, is not a mask of Keras. Call the layer with it: `crf(scores, mask={name})`",
    "padding": "`{layer}` has no mask, so it trains and decodes padding as a part of the sentences. Use `mask_zero="
    "True` in the Embedding layer, or call `crf(scores, mask=keras.ops.not_equal(ids, 0))`. Received: {received}",
    "multiplier": "`{layer}` takes no number of tags, only scores for each tag: its first argument is `lr_multiplier`. "
    "If this is meant, use a float. Received: lr_multiplier={size} for {size} tags",
    "unused scores": "`{layer}` was called in training, but no loss used its transitions, so they are not trained. Use "
    "`loss=layer.sparse_loss` or, for one-hot tags, `layer.dense_loss`. To train only other layers, set "
    "`layer.trainable = False`.",
    "metrics": "The metric {metric} counts the masked positions of `{layer}`, too. Use `layer.sparse_accuracy`, "
    "`layer.dense_accuracy` for one-hot tags, or `layer.viterbi_accuracy`.",
}
_OF_SCORES = ("linear", "log_softmax", "")  # activations that a last Dense layer may have
_MASKS = {"attention_mask", "encoder_padding_mask", "input_mask", "padding_mask"}  # inputs of the encoders of others
_SAMPLE = 1024  # sentences that are searched for padding
_WARNED = weakref.WeakKeyDictionary()  # layer -> the subjects of its warnings


def check_fit(model: Any, x: Any, y: Any, class_weight: Any = None) -> None:
    """Checks the arguments of `fit` for a model with CRF layers."""
    losses, _ = _compiled_with(model)
    if class_weight is not None and any(isinstance(loss, SentenceLoss) for loss in flat([losses])):
        raise ValueError(
            "`class_weight` has no meaning for a CRF, which has one loss per sentence: Keras weights each sentence "
            "by the position of its largest tag. To weight sentences use `sample_weight` of shape (batch,). "
            f"Received: class_weight={class_weight}"
        )
    for layer in check_compiled(model):
        if not _called_with_mask(layer):
            warn_of_padding(layer, x, y)


def check_compiled(model: Any) -> Any:
    """Checks the losses and metrics of a model with CRF layers. Returns those layers whose outputs it has."""
    losses, metrics = _compiled_with(model)
    outputs = [layer_behind(output) for output in getattr(model, "outputs", None) or []]
    layers = [layer for layer in dict.fromkeys(outputs) if isinstance(layer, ChainLayer)]
    for layer in layers:
        indices = [index for index, output in enumerate(outputs) if output is layer]
        by_output = _by_output(losses, model)
        if mistake := _loss_of_keras(layer, indices, by_output):
            raise ValueError(mistake)
        own = [by_output[index] for index in indices]
        if any(hasattr(loss, "belongs_to") and not loss.belongs_to(layer) for loss in own):
            raise ValueError(
                f"The loss of a CRF must be that of the layer in the same model, `model.get_layer({layer.name!r})."
                f"sparse_loss`. Received: the loss of another layer for outputs of `{layer.name}`"
            )
        if _called_with_mask(layer):
            by_metric = [_by_output(collection, model) for collection in metrics]
            compiled = [one for collection in by_metric for index in indices for one in flat(collection[index])]
            wrong = [_name_of(metric) for metric in compiled if metric is not None and _is_of_keras(metric)]
            if wrong:
                warn_once(layer, "metrics", metric=wrong[0])
    return layers


def _loss_of_keras(layer: Any, mine: Any, losses: Any) -> str | None:
    """The mistake, if the outputs of a CRF layer have losses of Keras, and no loss may be one of the layer."""
    others = [loss for loss in losses if loss is not None and not _is_of_keras(loss)]
    wrong = [losses[index] for index in mine if losses[index] is not None and _is_of_keras(losses[index])]
    if not wrong or others or not layer.trainable:
        return None
    return (
        f"A model whose output is that of the CRF `{layer.name}` needs a loss of this layer: no other loss trains the "
        f"transitions. Write `model.compile(optimizer, loss=model.get_layer({layer.name!r}).sparse_loss)` or, for "
        f"one-hot tags, `dense_loss`. Received: loss={_name_of(wrong[0])}"
    )


def _by_output(argument: Any, model: Any) -> Any:
    """A list with what `compile` was given for each output of the model, None where there is nothing."""
    outputs = getattr(model, "outputs", None) or []
    if isinstance(argument, dict):
        return [argument.get(name) for name in model.output_names] if outputs else []
    if isinstance(argument, (list, tuple)) and len(argument) == len(outputs):
        return list(argument)
    return [argument] * len(outputs)


def flat(argument: Any) -> list[Any]:
    """The arrays or names in nested lists, tuples and dicts, one list."""
    argument = list(argument.values()) if isinstance(argument, dict) else argument
    return [one for part in argument for one in flat(part)] if isinstance(argument, (list, tuple)) else [argument]


def _is_of_keras(loss_or_metric: Any) -> Any:
    """Whether a loss or a metric, or the function that it wraps, is one of Keras' own."""
    if isinstance(loss_or_metric, str):
        return loss_or_metric not in keras.utils.get_custom_objects()
    function = getattr(loss_or_metric, "fn", getattr(loss_or_metric, "_fn", loss_or_metric))
    return (getattr(function, "__module__", None) or "").partition(".")[0] == keras.__name__


def _name_of(loss_or_metric: Any) -> Any:
    if isinstance(loss_or_metric, str):
        return repr(loss_or_metric)
    return getattr(loss_or_metric, "__name__", type(loss_or_metric).__name__)


def refuse_arguments_of_other_layers(arguments: Any) -> None:
    """Raises a TypeError that names the mend if an argument of a CRF layer is one of other CRF layers."""
    for name in _OF_OTHER_LAYERS.keys() & arguments.keys():
        raise TypeError(
            f"`ConditionalRandomField` has no argument `{name}`: {_OF_OTHER_LAYERS[name]}. Received: "
            f"{name}={arguments[name]!r}"
        )


def warn_of_inputs(layer: Any, inputs: Any) -> None:
    """Warns if the inputs of a CRF layer are outputs of a recurrent layer, of a softmax, or of a hidden Dense layer."""
    before = layer_behind(inputs)
    inner = before
    while hasattr(inner, "layer"):  # of TimeDistributed, SetLearningRate and the like
        inner = inner.layer
    if isinstance(inner, (keras.layers.RNN, keras.layers.Bidirectional)):
        warn_once(layer, "recurrent", before=before.name, size=inputs.shape[-1])
    activation = getattr(getattr(inner, "activation", None), "__name__", "")
    if "softmax" in (activation, type(inner).__name__.lower(), getattr(inner, "name", "").rpartition(".")[2]):
        warn_once(layer, "softmax", received=f"the output of the softmax `{before.name}`")
    elif isinstance(inner, keras.layers.Dense) and activation not in _OF_SCORES:
        warn_once(layer, "activation", before=before.name, activation=activation, size=inputs.shape[-1])


def warn_of_probabilities(layer: Any, emissions: TensorLike) -> None:
    """Warns if all emissions `(positions, tags)` of a CRF layer are probabilities that sum to 1."""
    if emissions.shape[-1] > 1 and (emissions >= 0).all() and np.allclose(emissions.sum(axis=-1), 1.0, atol=1e-4):
        warn_once(layer, "softmax", received="probabilities")


def warn_of_unused_mask(layer: Any, inputs: Any) -> None:
    """Warns if a CRF layer gets no mask, though an input that its inputs depend on is named like one."""
    for name in sorted(_MASKS & input_names(inputs)):
        warn_once(layer, "unused mask", name=name)


def warn_of_tags_as_multiplier(layer: Any, size: int) -> None:
    """Warns if the number of tags was given as `lr_multiplier`, the first argument."""
    is_power_of_ten = str(layer.lr_multiplier).strip("0") == "1"
    if type(layer.lr_multiplier) is int and layer.lr_multiplier == size and not is_power_of_ten:
        warn_once(layer, "multiplier", size=size)


def warn_of_padding(layer: Any, inputs: Any, tags: TensorLike) -> None:
    """Warns if a CRF layer that masks nothing gets integer inputs or tags `(sentences, time)` that look padded."""
    arrays = inputs.values() if isinstance(inputs, dict) else inputs if isinstance(inputs, (list, tuple)) else [inputs]
    # flags and segments, 0 or 1, may begin or end with zeros without being padding
    numbers = [x[:_SAMPLE] for x in arrays if _is_matrix(x) and x.dtype.kind in "iu" and x.max(initial=0) > 1]
    received = None
    if any(_is_padding(x == 0) for x in numbers):
        received = "inputs that end or begin with zeros"
    elif _is_matrix(tags) and tags.dtype.kind in "if" and _is_padding(tags[:_SAMPLE] < 0):
        received = "tags that are negative at the end or the beginning of sentences"
    if received and "unused mask" not in _WARNED.get(layer, ()):
        warn_once(layer, "padding", received=received)


def _is_matrix(x: Any) -> Any:
    return isinstance(x, np.ndarray) and x.ndim == 2 and x.size


def _is_padding(empty: Any) -> bool:
    """Whether True in `empty (sentences, time)` is the padding of sentences that differ in length, on one side."""
    for side in (empty[:, ::-1], empty):
        lengths = np.cumprod(side, axis=1).sum(axis=1)  # (sentences,)
        if lengths.sum() == empty.sum() and len(set(lengths)) > 1 and 2 <= lengths.max() < empty.shape[1]:
            return True
    return False


def warn_once(layer: Any, subject: str, **facts: Any) -> None:
    """Warns of a mistake, unless the layer has been warned of it."""
    warned = _WARNED.setdefault(layer, set())
    if subject not in warned:
        warned.add(subject)
        warnings.warn(_WARNINGS[subject].format(layer=layer.name, **facts), UserWarning, stacklevel=2)


def _called_with_mask(layer: Any) -> bool:
    """Whether a layer was called on symbolic tensors with a mask."""
    return any(node.arguments.kwargs.get("mask") is not None for node in layer._inbound_nodes)


def _compiled_with(model: Any) -> tuple[Any, Any]:
    """The `loss` and the list of `metrics` that were passed to `compile`."""
    compiled = getattr(model, "_compile_metrics", None)
    metrics = [] if compiled is None else [compiled._user_metrics, compiled._user_weighted_metrics]
    return getattr(model, "loss", None), metrics

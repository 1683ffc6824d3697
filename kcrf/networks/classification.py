"""Builds the network of a text classifier: from the inputs of a reader to a score for each label."""

from collections.abc import Sequence
from typing import Any

from kcrf.backend import keras, ops
from kcrf.layers.dense import TruncatedNormal
from kcrf.layers.pooling import FirstToken
from kcrf.networks.bert import build_bert, combine_states, layer_numbers
from kcrf.networks.embeddings import embed_vectors, encode
from kcrf.networks.tagging import from_scratch, mask_of

_FILTERS = 128  # of the convolution over layers


def build_classifier(model: Any, labels: Sequence[str], reader: Any, checkpoint: Any = None) -> Any:
    """Builds the `keras.Model` of a text classifier, with new weights if `checkpoint` is None.

    Its outputs are scores `(batch, labels)` before the softmax, or, if a text can have several labels, before the
    sigmoid; without labels they are numbers `(batch, 1)`.
    """
    if model.bert is None:
        inputs, hidden = from_scratch(model, reader)
        vector = _pooled(model.pool, hidden, mask_of(inputs))
    else:
        inputs, vector = _vector_of_bert(model, reader, checkpoint)
    if model.vectors is not None and model.vectors_at == "top":
        words = embed_vectors(inputs, reader.vectors, model.train_vectors)  # (batch, time, features)
        has_word = ops.any(ops.not_equal(inputs["vectors"], 0), axis=2)  # (batch, time)
        vector = keras.layers.Concatenate()([vector, _pooled("mean", words, has_word)])
    vector = keras.layers.Dropout(model.dropout, name="Dropout")(vector)
    kernel = TruncatedNormal(0.02)
    classes = keras.layers.Dense(len(labels) or 1, kernel_initializer=kernel, name="Classes", dtype="float32")
    return keras.Model(inputs, classes(vector))


def _vector_of_bert(model: Any, reader: Any, checkpoint: Any) -> tuple[dict[str, Any], Any]:
    """The inputs and the vector of the text, `(batch, features)`, of a model on top of a BERT."""
    bert = build_bert(model, reader, checkpoint, with_pool=model.pool == "pooler")
    if model.pool == "pooler":
        return bert.inputs, bert.pooled
    if model.pool == "cnn":
        read_layers = "all" if model.read_layers == "last" else model.read_layers
        numbers = layer_numbers(read_layers, len(bert.states))
        # Convolutions over the first token of layers: Mozafari et al., https://arxiv.org/abs/2008.06460.
        layers = ops.stack([FirstToken(name=f"First-{i}")(bert.states[n]) for i, n in enumerate(numbers)], axis=1)
        convolve = keras.layers.Conv1D(_FILTERS, 3, padding="same", activation="relu", name="Pool-Convolution")
        return bert.inputs, ops.max(convolve(layers), axis=1)
    hidden = combine_states(bert.states, model)  # (batch, time, features)
    if model.encoder == "bilstm":
        hidden = encode("bilstm", hidden, bert.mask, model.width, model.depth, model.dropout)
    return bert.inputs, _pooled(model.pool, hidden, bert.mask)


def _pooled(name: str, hidden: Any, mask: Any) -> Any:
    """Pools the vectors `(batch, time, width)` of each text: "first", "mean" or "max". An empty text has zeros."""
    if name == "first":
        return FirstToken(name="First")(hidden)
    real, hidden = mask[:, :, None], ops.cast(hidden, "float32")  # (batch, time, 1); bfloat16 cannot count beyond 256
    count = ops.sum(ops.cast(real, hidden.dtype), axis=1)  # (batch, 1)
    if name == "mean":
        return ops.sum(ops.where(real, hidden, 0.0), axis=1) / ops.maximum(count, 1.0)
    return ops.where(count > 0, ops.max(ops.where(real, hidden, -1e9), axis=1), 0.0)

"""Builds the network of a tagger: from the inputs of a reader to emission scores."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from kcrf.backend import keras, ops
from kcrf.layers import ConditionalRandomField, NGramScores
from kcrf.networks.bert import build_bert, combine_states
from kcrf.networks.embeddings import Inputs, embed, embed_lexicon, embed_tokens, embed_vectors, encode
from kcrf.readers import StandardsReader, WordReader
from kcrf.readers.code_points import TYPES
from kcrf.readers.pieces import CASES
from kcrf.tags import TagScheme

HEAD = "^(BiLSTM-|Case|Classes|Emissions|Layers/|Pool-|Vectors)"  # paths of the variables outside of a BERT and a CRF
_CASE_WIDTH = 16
_TYPE_WIDTH = 8


def build_network(
    model: Any, scheme: TagScheme, reader: Any, weights: Any = None, standards: Sequence[str] = ()
) -> Any:
    """Builds the `keras.Model` of a tagger from a `ModelConfig`, with new weights if `weights` is None.

    Its outputs are emission scores, -inf where masked if there is a CRF; a dict by segmentation standard if there are
    several, each with its own head.
    """
    reader = reader.first if isinstance(reader, StandardsReader) else reader
    if model.bert is None:
        inputs, hidden = from_scratch(model, reader)
    else:
        inputs, hidden = _on_top_of_bert(model, reader, weights)
    if model.vectors is not None and model.vectors_at == "top":
        hidden = keras.layers.Concatenate()([hidden, embed_vectors(inputs, reader.vectors, model.train_vectors)])
    ngrams = getattr(reader, "ngrams", None)
    if ngrams is not None:
        inputs["ngrams"] = keras.Input((None, ngrams.width), dtype="int32", name="ngrams")
    head = partial(_emissions, model, scheme, ngrams and ngrams.buckets, inputs, hidden)
    return keras.Model(inputs, {name: head(f"-{name}") for name in standards} or head(""))


def _emissions(model: Any, scheme: TagScheme, buckets: int | None, inputs: Inputs, hidden: Any, suffix: str) -> Any:
    """The emission scores of one head, `(batch, time, tags)`; the names of its layers end in the suffix."""
    emissions = keras.layers.Dense(len(scheme), name=f"Emissions{suffix}", dtype="float32")(hidden)
    if buckets is not None:
        emissions = emissions + NGramScores(len(scheme), buckets, name=f"NGrams{suffix}")(inputs["ngrams"])
    if model.head == "crf":
        constraints = scheme if model.constraints else None
        layer = ConditionalRandomField(model.crf_lr_multiplier, constraints=constraints, name=f"CRF{suffix}")
        emissions = layer(emissions, mask=mask_of(inputs))
    return emissions


def from_scratch(model: Any, reader: Any) -> tuple[Inputs, Any]:
    """The inputs and the hidden vectors `(batch, time, width)` of a model without a BERT."""
    if isinstance(reader, WordReader):
        vocabulary: Any = reader.vocabulary
        inputs, vectors = embed_tokens(vocabulary.sizes, model.word_dropout)
    else:
        inputs, vectors = _character_vectors(model, reader)
    if model.vectors is not None and model.vectors_at == "embeddings":
        vectors = keras.layers.Concatenate()([vectors, embed_vectors(inputs, reader.vectors, model.train_vectors)])
    vectors = keras.layers.Dropout(model.dropout, name="Embedding-Dropout")(vectors)
    return inputs, encode(model.encoder, vectors, mask_of(inputs), model.width, model.depth, model.dropout)


def _character_vectors(model: Any, reader: Any) -> tuple[Inputs, Any]:
    """The inputs of a model of characters, and their vectors `(batch, time, features)`."""
    characters = keras.Input((None,), dtype="int32", name="characters")
    bigrams = keras.Input((None,), dtype="int32", name="bigrams")
    inputs = {"characters": characters, "bigrams": bigrams}
    widths = (model.character_width, model.bigram_width)
    sizes = reader.vocabulary.sizes
    vectors = embed(characters, bigrams, sizes, widths, model.bigram_dropout)
    if reader.lexicon is not None:
        inputs["words"] = keras.Input((None, reader.lexicon.width), dtype="int32", name="words")
        vectors = keras.layers.Concatenate()([vectors, embed_lexicon(inputs["words"], reader.lexicon.size)])
    if reader.types:
        inputs["types"] = keras.Input((None,), dtype="int32", name="types")
        types = keras.layers.Embedding(len(TYPES) + 1, _TYPE_WIDTH, name="Embedding-Type")(inputs["types"])
        vectors = keras.layers.Concatenate()([vectors, types])
    return inputs, vectors


def _on_top_of_bert(model: Any, reader: Any, checkpoint: Any) -> tuple[Inputs, Any]:
    """The inputs and the hidden vectors `(batch, time, width)` of a model on top of a BERT."""
    bert = build_bert(model, reader, checkpoint)
    inputs = {**bert.inputs, "tagged": keras.Input((None,), dtype="int32", name="tagged")}
    hidden = combine_states(bert.states, model)  # (batch, time, features)
    hidden = keras.layers.Dropout(model.dropout, name="Dropout")(hidden)
    if model.word_case:
        inputs["case"] = keras.Input((None,), dtype="int32", name="case")
        case = keras.layers.Embedding(len(CASES) + 1, _CASE_WIDTH, name="Case")(inputs["case"])
        hidden = keras.layers.Concatenate()([hidden, case])
    if model.encoder == "bilstm":
        hidden = encode("bilstm", hidden, bert.mask, model.width, model.depth, model.dropout)
    return inputs, hidden


def mask_of(inputs: Inputs) -> Any:
    """Whether each position has a tag, `(batch, time)` bool, from a dict of inputs."""
    return ops.not_equal(next(inputs[name] for name in ("tagged", "tokens", "characters") if name in inputs), 0)


def output_of_standard(model: Any, standard: str) -> Any:
    """Selects the output of one segmentation standard from a model that has several."""
    return keras.Model(model.input, model.output[standard])


def crf_of(model: Any) -> Any:
    """The `ConditionalRandomField` of a model with one head, or None."""
    return next((layer for layer in model.layers if isinstance(layer, ConditionalRandomField)), None)

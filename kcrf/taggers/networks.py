"""The network of a tagger, from the inputs that a reader makes to the emission scores of tags."""

from kcrf.backend import keras, ops
from kcrf.layers import ConditionalRandomField
from kcrf.readers.pieces import CASES
from kcrf.taggers.berts import build_bert, combine_states
from kcrf.taggers.encoders import embed, embed_words, encode
from kcrf.taggers.vectors import embed_vectors
from kcrf.taggers.word_vectors import embed_tokens

__all__ = ["HEAD", "build_network", "crf_of", "from_scratch", "mask_of"]

HEAD = "^(BiLSTM-|Case|Classes|Emissions|Layers/|Pool-|Vectors)"  # paths of the variables outside a BERT, but the CRF's
_CASE_WIDTH = 16


def build_network(settings, reader, checkpoint=None):
    """The model of a tagger.

    Args:
        settings: `Settings`, with a number as `crf_lr_multiplier`.
        reader: The `CharacterReader` or `PieceReader` that makes the inputs.
        checkpoint: The checkpoint of the BERT, or None, the default, to load nothing.

    Returns:
        A `keras.Model`. Its inputs are a dict of ints `(batch, time)`, "words" `(batch, time, features)`; its output
        are emission scores `(batch, time, tags)`, with a CRF -inf where masked.
    """
    if settings.bert is None:
        inputs, hidden = from_scratch(settings, reader)
    else:
        inputs, hidden = _on_top_of_bert(settings, reader, checkpoint)
    if settings.vectors is not None and settings.vectors_at == "top":
        hidden = keras.layers.Concatenate()([hidden, embed_vectors(inputs, settings, reader)])
    scheme = settings.tag_scheme()
    emissions = keras.layers.Dense(len(scheme), name="Emissions", dtype="float32")(hidden)
    if settings.head == "crf":
        constraints = scheme if settings.constraints else None
        layer = ConditionalRandomField(settings.crf_lr_multiplier, constraints=constraints, name="CRF")
        emissions = layer(emissions, mask=mask_of(inputs))
    return keras.Model(inputs, emissions)


def from_scratch(settings, reader):
    """The inputs and the hidden vectors `(batch, time, width)` of a model without a BERT."""
    if settings.units == "words":
        inputs, vectors = embed_tokens(reader.vocabulary.sizes, settings.word_dropout)
    else:
        inputs, vectors = _character_vectors(settings, reader)
    if settings.vectors is not None and settings.vectors_at == "embeddings":
        vectors = keras.layers.Concatenate()([vectors, embed_vectors(inputs, settings, reader)])
    vectors = keras.layers.Dropout(settings.dropout, name="Embedding-Dropout")(vectors)
    hidden = encode(settings.encoder, vectors, mask_of(inputs), settings.width, settings.depth, settings.dropout)
    return inputs, hidden


def _character_vectors(settings, reader):
    """The inputs of a model of characters, and their vectors `(batch, time, features)`."""
    characters = keras.Input((None,), dtype="int32", name="characters")
    bigrams = keras.Input((None,), dtype="int32", name="bigrams")
    inputs = {"characters": characters, "bigrams": bigrams}
    widths = (settings.character_width, settings.bigram_width)
    sizes = reader.vocabulary.sizes
    # (batch, time, features)
    vectors = embed(characters, bigrams, sizes, widths, settings.bigram_dropout)
    if reader.lexicon is not None:
        inputs["words"] = keras.Input((None, reader.lexicon.width), dtype="int32", name="words")
        vectors = keras.layers.Concatenate()([vectors, embed_words(inputs["words"], reader.lexicon.size)])
    return inputs, vectors


def _on_top_of_bert(settings, reader, checkpoint):
    """The inputs and the hidden vectors `(batch, time, width)` of a model on top of a BERT."""
    bert = build_bert(settings, reader, checkpoint)
    inputs = {**bert.inputs, "tagged": keras.Input((None,), dtype="int32", name="tagged")}
    hidden = combine_states(bert.states, settings, reader)  # (batch, time, features)
    hidden = keras.layers.Dropout(settings.dropout, name="Dropout")(hidden)
    if settings.word_case:
        inputs["case"] = keras.Input((None,), dtype="int32", name="case")
        case = keras.layers.Embedding(len(CASES) + 1, _CASE_WIDTH, name="Case")(inputs["case"])
        hidden = keras.layers.Concatenate()([hidden, case])
    if settings.encoder == "bilstm":
        hidden = encode("bilstm", hidden, bert.mask, settings.width, settings.depth, settings.dropout)
    return inputs, hidden


def mask_of(inputs):
    """Which positions carry a tag, `(batch, time)` bool, of a dict of inputs."""
    return ops.not_equal(next(inputs[name] for name in ("tagged", "tokens", "characters") if name in inputs), 0)


def crf_of(model):
    """The `ConditionalRandomField` of a model, or None."""
    return next((layer for layer in model.layers if isinstance(layer, ConditionalRandomField)), None)

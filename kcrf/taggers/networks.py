"""The network of a tagger: what a reader gives in, emission scores of tags out."""

from kcrf.backend import keras, ops
from kcrf.layers import ConditionalRandomField
from kcrf.models import build_transformer_model
from kcrf.readers.pieces import BERT_CONFIG, CASES
from kcrf.taggers.encoders import embed, embed_words, encode

__all__ = ["HEAD", "build_network", "crf_of", "mask_of"]

HEAD = "^(BiLSTM-|Case|Emissions)"  # the paths of the variables above a BERT, the CRF's apart
_CASE_WIDTH = 16


def build_network(settings, reader, folder, pretrained=False):
    """The model: inputs of a reader in, emission scores `(batch, time, tags)` out, a CRF's masked positions at -inf.

    Args:
        settings: `Settings`, with a number for the CRF's multiplier.
        reader: The `CharacterReader` or `PieceReader` that makes the inputs.
        folder: The `RunFolder`, which holds the configuration of a BERT.
        pretrained: Whether to load the weights of the BERT of the settings. Defaults to False.

    Returns:
        A `keras.Model` with a dict of inputs.
    """
    body = _from_scratch if settings.bert is None else _on_top_of_bert
    inputs, hidden = body(settings, reader, folder, pretrained)
    scheme = settings.tag_scheme()
    emissions = keras.layers.Dense(len(scheme), name="Emissions")(hidden)
    if settings.head == "crf":
        constraints = scheme if settings.constraints else None
        layer = ConditionalRandomField(settings.crf_lr_multiplier, constraints=constraints, name="CRF")
        emissions = layer(emissions, mask=mask_of(inputs))
    return keras.Model(inputs, emissions)


def _from_scratch(settings, reader, folder, pretrained):
    characters = keras.Input((None,), dtype="int32", name="characters")
    bigrams = keras.Input((None,), dtype="int32", name="bigrams")
    inputs = {"characters": characters, "bigrams": bigrams}
    widths = (settings.character_width, settings.bigram_width)
    sizes = reader.vocabulary.sizes
    vectors = embed(characters, bigrams, sizes, widths, settings.bigram_dropout)
    if reader.lexicon is not None:
        inputs["words"] = keras.Input((None, reader.lexicon.width), dtype="int32", name="words")
        vectors = keras.layers.Concatenate()([vectors, embed_words(inputs["words"], reader.lexicon.size)])
    vectors = keras.layers.Dropout(settings.dropout, name="Embedding-Dropout")(vectors)
    hidden = encode(settings.encoder, vectors, mask_of(inputs), settings.width, settings.depth, settings.dropout)
    return inputs, hidden


def _on_top_of_bert(settings, reader, folder, pretrained):
    bert = build_transformer_model(
        folder.file(BERT_CONFIG),
        settings.bert if pretrained else None,
        model=reader.config["model_type"],
        skip_top_layers=settings.skip_top_layers if pretrained else 0,
        mixout=settings.mixout,
    )
    tagged = keras.Input((None,), dtype="int32", name="tagged")
    inputs = {tensor.name: tensor for tensor in (*bert.inputs, tagged)}
    hidden = keras.layers.Dropout(settings.dropout, name="Dropout")(bert.output)
    if settings.word_case:
        inputs["case"] = keras.Input((None,), dtype="int32", name="case")
        case = keras.layers.Embedding(len(CASES) + 1, _CASE_WIDTH, name="Case")(inputs["case"])
        hidden = keras.layers.Concatenate()([hidden, case])
    if settings.encoder == "bilstm":
        real = ops.not_equal(bert.inputs[0], 0)
        hidden = encode("bilstm", hidden, real, settings.width, settings.depth, settings.dropout)
    return inputs, hidden


def mask_of(inputs):
    """Which positions carry a tag, bool, of a dict of inputs."""
    return ops.not_equal(inputs["tagged"] if "tagged" in inputs else inputs["characters"], 0)


def crf_of(model):
    """The model's ConditionalRandomField, or None."""
    return next((layer for layer in model.layers if isinstance(layer, ConditionalRandomField)), None)

"""The vectors of a model from scratch: embeddings and word vectors, and the hidden vectors of encoders."""

from typing import Any

from kcrf.backend import keras, ops
from kcrf.layers.embeddings import SinusoidalPositions
from kcrf.readers import WordVectors, WordVocabulary
from kcrf.readers.words import SPELLING

L = keras.layers
Inputs = dict[str, Any]  # symbolic integers `(batch, time)` or `(batch, time, features)`
_LEXICON_WIDTH = 8
_WORD_WIDTH = 100
_CHARACTER_WIDTH = 32
_SPELLING_WIDTH = 64
_FEATURE_WIDTH = 12


def embed(characters: Any, bigrams: Any, sizes: tuple[int, int], widths: tuple[int, int], bigram_dropout: float) -> Any:
    """Embeddings of each character and each bigram, concatenated. Dropout of whole bigrams keeps from overfitting."""
    characters = L.Embedding(sizes[0], widths[0], name="Embedding-Character")(characters)
    bigrams = L.Embedding(sizes[1], widths[1], name="Embedding-Bigram")(bigrams)
    bigrams = L.Dropout(bigram_dropout, noise_shape=(None, None, 1), name="Embedding-Bigram-Dropout")(bigrams)
    return L.Concatenate()([characters, bigrams])


def embed_lexicon(words: Any, size: int) -> Any:
    """Embeds the lexicon features of each character, `(batch, time, features)` integers below `size`."""
    vectors = L.Embedding(size, _LEXICON_WIDTH, name="Embedding-Words")(words)
    return L.Reshape((-1, words.shape[-1] * _LEXICON_WIDTH), name="Embedding-Words-Flat")(vectors)


def embed_tokens(sizes: tuple[int, int, int], word_dropout: float) -> tuple[Inputs, Any]:
    """Creates the inputs of a word-level model, and computes a vector for each word, `(batch, time, features)`.

    It has the embedding of the word, a convolution with max pooling over its characters (Ma and Hovy, 2016,
    https://arxiv.org/abs/1603.01354), and embeddings of its features. Dropout of whole words keeps from overfitting.
    """
    tokens = keras.Input((None,), dtype="int32", name="tokens")
    spelling = keras.Input((None, SPELLING), dtype="int32", name="spelling")
    features = keras.Input((None, WordVocabulary.width), dtype="int32", name="features")
    words = L.Embedding(sizes[0], _WORD_WIDTH, name="Embedding-Token")(tokens)
    words = L.Dropout(word_dropout, noise_shape=(None, None, 1), name="Embedding-Token-Dropout")(words)
    shapes = L.Embedding(sizes[1], _CHARACTER_WIDTH, name="Embedding-Spelling")(spelling)
    shapes = L.Conv2D(_SPELLING_WIDTH, (1, 3), padding="same", name="Spelling")(shapes)
    shapes = L.MaxPooling2D((1, SPELLING), name="Spelling-Maximum")(shapes)  # (batch, time, 1, width)
    shapes = ops.relu(shapes[:, :, 0])  # relu after the maximum gives the same result and has fewer values to compute
    surface = L.Embedding(sizes[2], _FEATURE_WIDTH, name="Embedding-Feature")(features)
    surface = L.Reshape((-1, WordVocabulary.width * _FEATURE_WIDTH), name="Embedding-Feature-Flat")(surface)
    inputs = {"tokens": tokens, "spelling": spelling, "features": features}
    return inputs, L.Concatenate()([words, shapes, surface])


def embed_vectors(inputs: Inputs, vectors: WordVectors, trainable: bool) -> Any:
    """The mean of the word vectors of each group of places around a position, `(batch, time, groups * features)`.

    Adds the input "vectors": for each place around a position a row of `vectors.table`, 0 for no word.
    """
    rows = keras.Input((None, vectors.places), dtype="int32", name="vectors")
    inputs["vectors"] = rows
    table = L.Embedding(*vectors.table.shape, weights=vectors.table, trainable=trainable, name="Vectors")
    is_word = ops.cast(ops.not_equal(rows, 0), "float32")[..., None]  # (batch, time, places, 1)
    looked_up = table(rows) * is_word  # (batch, time, places, features): row 0 stays zeros, also in training
    means = [
        ops.sum(looked_up[:, :, group], axis=2) / ops.maximum(ops.sum(is_word[:, :, group], axis=2), 1.0)
        for group in vectors.groups
    ]
    return L.Concatenate(name="Vectors-Groups")(means) if len(means) > 1 else means[0]


def encode(name: str, vectors: Any, mask: Any, width: int, depth: int, dropout: float) -> Any:
    """Computes hidden vectors `(batch, time, width)`: even for "bilstm", below 64 or its multiple for "transformer"."""
    if name not in ENCODERS:
        raise ValueError(f"The encoder is one of {sorted(ENCODERS)}. Received: {name!r}")
    return ENCODERS[name](vectors, mask, width, depth, dropout)


def _cnn(x: Any, mask: Any, width: int, depth: int, dropout: float) -> Any:
    """Residual convolutions over three characters."""
    real = ops.cast(mask, "float32")[:, :, None]  # (batch, time, 1)
    x = L.Dense(width, name="Projection")(x)
    for i in range(depth):
        y = L.Conv1D(width, 3, padding="same", activation="relu", name=f"Convolution-{i}")(x * real)
        x = L.LayerNormalization(name=f"Convolution-{i}-Norm")(x + L.Dropout(dropout)(y))
    return x


def _bilstm(x: Any, mask: Any, width: int, depth: int, dropout: float) -> Any:
    """Bidirectional LSTMs; the mask must be right padding."""
    for i in range(depth):
        lstm = L.LSTM(width // 2, return_sequences=True)
        x = L.Bidirectional(lstm, name=f"BiLSTM-{i}")(x, mask=mask)
        x = L.Dropout(dropout)(x)
    return x


def _transformer(x: Any, mask: Any, width: int, depth: int, dropout: float) -> Any:
    """Pre-norm transformer layers with sinusoidal positions."""
    x = L.Dense(width, name="Projection")(x)
    x = x + SinusoidalPositions(name="Positions")(x)
    attended = mask[:, None, :]  # (batch, 1, time): every query attends to the real keys
    for i in range(depth):
        y = L.LayerNormalization(name=f"Attention-{i}-Norm")(x)
        heads = max(1, width // 64)
        y = L.MultiHeadAttention(heads, width // heads, name=f"Attention-{i}")(y, y, attention_mask=attended)
        x = x + L.Dropout(dropout)(y)
        y = L.LayerNormalization(name=f"FeedForward-{i}-Norm")(x)
        y = L.Dense(4 * width, activation="gelu", name=f"FeedForward-{i}-Up")(y)
        x = x + L.Dropout(dropout)(L.Dense(width, name=f"FeedForward-{i}-Down")(y))
    return L.LayerNormalization(name="Norm")(x)


ENCODERS = {"cnn": _cnn, "bilstm": _bilstm, "transformer": _transformer}

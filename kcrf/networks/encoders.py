"""Embeddings of characters, and encoders that compute a hidden vector for each character.

The vectors of a sentence do not depend on padding.
"""

from kcrf.backend import keras, ops
from kcrf.layers.embeddings import SinusoidalPositions

L = keras.layers
_WORD_WIDTH = 8


def encode(name, vectors, mask, width, depth, dropout):
    """Computes the hidden vectors of an encoder.

    Args:
        name: One of `ENCODERS`: "cnn", "bilstm" or "transformer".
        vectors: `(batch, time, features)`, symbolic.
        mask: `(batch, time)` bool, symbolic.
        width: The size of a hidden vector. Must be even for "bilstm", and a multiple of 64 or below 64 for
            "transformer".
        depth: The number of layers.
        dropout: The fraction of the values that are dropped between layers.

    Returns:
        `(batch, time, width)`, symbolic.
    """
    if name not in ENCODERS:
        raise ValueError(f"The encoder is one of {sorted(ENCODERS)}. Received: {name!r}")
    return ENCODERS[name](vectors, mask, width, depth, dropout)


def embed(characters, bigrams, sizes, widths, bigram_dropout):
    """Embeddings of each character and each bigram, concatenated: `(batch, time, sum of widths)`.

    In training, a fraction `bigram_dropout` of the bigrams is replaced by zeros, so that the model does not overfit to
    the
    bigrams of the training set.

    Args:
        characters, bigrams: `(batch, time)`, symbolic ints.
        sizes: The sizes of the vocabularies of characters and bigrams.
        widths: The sizes of their embeddings.
        bigram_dropout: The fraction of the bigrams.
    """
    characters = L.Embedding(sizes[0], widths[0], name="Embedding-Character")(characters)
    bigrams = L.Embedding(sizes[1], widths[1], name="Embedding-Bigram")(bigrams)
    bigrams = L.Dropout(bigram_dropout, noise_shape=(None, None, 1), name="Embedding-Bigram-Dropout")(bigrams)
    return L.Concatenate()([characters, bigrams])


def embed_words(words, size):
    """Embeds the lexicon features of each character, `(batch, time, features)` integers below `size`."""
    vectors = L.Embedding(size, _WORD_WIDTH, name="Embedding-Words")(words)
    return L.Reshape((-1, words.shape[-1] * _WORD_WIDTH), name="Embedding-Words-Flat")(vectors)


def _cnn(x, mask, width, depth, dropout):
    """Residual convolutions over three characters."""
    real = ops.cast(mask, "float32")[:, :, None]  # (batch, time, 1)
    x = L.Dense(width, name="Projection")(x)
    for i in range(depth):
        y = L.Conv1D(width, 3, padding="same", activation="relu", name=f"Convolution-{i}")(x * real)
        x = L.LayerNormalization(name=f"Convolution-{i}-Norm")(x + L.Dropout(dropout)(y))
    return x


def _bilstm(x, mask, width, depth, dropout):
    """Bidirectional LSTMs; the mask must be right padding."""
    for i in range(depth):
        lstm = L.LSTM(width // 2, return_sequences=True)
        x = L.Bidirectional(lstm, name=f"BiLSTM-{i}")(x, mask=mask)
        x = L.Dropout(dropout)(x)
    return x


def _transformer(x, mask, width, depth, dropout):
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

"""The vectors that a model from scratch reads: embeddings of characters, words and features, and word vectors."""

from typing import Any

from kcrf.backend import keras, ops
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
    surface = L.Embedding(sizes[2], _FEATURE_WIDTH, name="Embedding-Feature")(features)
    surface = L.Reshape((-1, WordVocabulary.width * _FEATURE_WIDTH), name="Embedding-Feature-Flat")(surface)
    inputs = {"tokens": tokens, "spelling": spelling, "features": features}
    return inputs, L.Concatenate()([words, _embed_spelling(spelling, sizes[1]), surface])


def _embed_spelling(spelling: Any, size: int) -> Any:
    """A vector for the characters of each word: from `(batch, time, SPELLING)` integers to `(batch, time, width)`."""
    vectors = L.Embedding(size, _CHARACTER_WIDTH, name="Embedding-Spelling")(spelling)
    vectors = L.Conv2D(_SPELLING_WIDTH, (1, 3), padding="same", name="Spelling")(vectors)
    vectors = L.MaxPooling2D((1, SPELLING), name="Spelling-Maximum")(vectors)  # (batch, time, 1, width)
    return ops.relu(vectors[:, :, 0])  # relu after the maximum gives the same result and has fewer values to compute


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

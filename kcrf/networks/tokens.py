"""The word representations of a model from scratch: embeddings of words, characters and features."""

from kcrf.backend import keras, ops
from kcrf.readers.words import SPELLING, WordVocabulary

L = keras.layers
_WORD_WIDTH = 100
_CHARACTER_WIDTH = 32
_SPELLING_WIDTH = 64
_FEATURE_WIDTH = 12


def embed_tokens(sizes, word_dropout):
    """Creates the inputs of a word-level model, and computes a vector for each word.

    The vector of a word is the concatenation of its embedding, of a convolution with max pooling over its characters
    (Ma
    and Hovy, 2016, "End-to-end Sequence Labeling via Bi-directional LSTM-CNNs-CRF"), and of embeddings of its features.

    In training, a fraction `word_dropout` of the word embeddings is replaced by zeros, so that the model does not
    overfit
    to the words of the training set.

    Args:
        sizes: The sizes of the vocabularies of words, characters and features: `WordVocabulary.sizes`.
        word_dropout: The fraction of the words.

    Returns:
        A dict of symbolic inputs for `kcrf.readers.words.WordReader`, and the vectors `(batch, time, features)`.
    """
    tokens = keras.Input((None,), dtype="int32", name="tokens")
    spelling = keras.Input((None, SPELLING), dtype="int32", name="spelling")
    features = keras.Input((None, WordVocabulary.width), dtype="int32", name="features")
    words = L.Embedding(sizes[0], _WORD_WIDTH, name="Embedding-Token")(tokens)
    words = L.Dropout(word_dropout, noise_shape=(None, None, 1), name="Embedding-Token-Dropout")(words)
    surface = L.Embedding(sizes[2], _FEATURE_WIDTH, name="Embedding-Feature")(features)
    surface = L.Reshape((-1, WordVocabulary.width * _FEATURE_WIDTH), name="Embedding-Feature-Flat")(surface)
    inputs = {"tokens": tokens, "spelling": spelling, "features": features}
    return inputs, L.Concatenate()([words, _read_characters(spelling, sizes[1]), surface])


def _read_characters(spelling, size):
    """A vector for the characters of each word: from `(batch, time, SPELLING)` integers to `(batch, time, width)`."""
    vectors = L.Embedding(size, _CHARACTER_WIDTH, name="Embedding-Spelling")(spelling)
    vectors = L.Conv2D(_SPELLING_WIDTH, (1, 3), padding="same", name="Spelling")(vectors)
    vectors = L.MaxPooling2D((1, SPELLING), name="Spelling-Maximum")(vectors)  # (batch, time, 1, width)
    return ops.relu(vectors[:, :, 0])  # relu after the maximum gives the same result and has fewer values to compute

"""Embeds pretrained word vectors: a vector for each position."""

from kcrf.backend import keras, ops

L = keras.layers


def embed_vectors(inputs, vectors, trainable):
    """Computes a vector for each position from the word vectors of the words around it.

    Args:
        inputs: The dict of symbolic inputs. This function adds the input "vectors", `(batch, time, places)` integers:
            rows of `vectors.table`, 0 for no word.
        vectors: `kcrf.readers.WordVectors`.
        trainable: Whether the table is trained with the model.

    Returns:
        `(batch, time, groups * features)`: for each group of places the mean over its words, zeros if there are none.
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

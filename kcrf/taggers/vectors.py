"""What a model reads of the vectors of words that a user gave: one vector for each position."""

from kcrf.backend import keras, ops

__all__ = ["embed_vectors"]

L = keras.layers


def embed_vectors(inputs, settings, reader):
    """The vectors of the words around each position.

    Args:
        inputs: The dict of symbolic inputs. The input "vectors" is added, `(batch, time, places)` ints, rows of the
            table of `reader.vectors`; 0 is no word.
        settings: `Settings`. The table is trained if `train_vectors` says so.
        reader: The reader, with its `WordVectors`.

    Returns:
        `(batch, time, groups * features)`: of each group of places the mean of its words, zeros without any.
    """
    known = reader.vectors
    rows = keras.Input((None, known.places), dtype="int32", name="vectors")
    inputs["vectors"] = rows
    table = L.Embedding(*known.table.shape, weights=known.table, trainable=settings.train_vectors, name="Vectors")
    is_word = ops.cast(ops.not_equal(rows, 0), "float32")[..., None]  # (batch, time, places, 1)
    vectors = table(rows) * is_word  # (batch, time, places, features): row 0 stays zeros, also in training
    means = [
        ops.sum(vectors[:, :, group], axis=2) / ops.maximum(ops.sum(is_word[:, :, group], axis=2), 1.0)
        for group in known.groups
    ]
    return L.Concatenate(name="Vectors-Groups")(means) if len(means) > 1 else means[0]

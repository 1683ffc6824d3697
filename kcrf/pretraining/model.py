"""A masked language model that computes scores only at the positions to predict."""

from typing import Any

from kcrf.backend import keras, ops
from kcrf.layers.embeddings import SinusoidalPositions

POSITIONS = "Predicted-Position"


def masked_language_model(transformer: Any) -> Any:
    """Builds the model to train: an encoder whose language-model head reads only the positions to predict.

    Scoring a large vocabulary at every position takes longer than a small encoder, and only 15 % of the positions are
    predicted.
    """
    layers, prefix = transformer.layers, transformer.config["prefix"]
    positions = keras.Input((None,), dtype="int32", name=POSITIONS)
    hidden = transformer.hidden_states[-1]  # (batch, time, hidden)
    x = ops.take_along_axis(hidden, positions[:, :, None], axis=1)  # (batch, predictions, hidden)
    x = layers[prefix + "MLM-Norm"](layers[prefix + "MLM-Dense"](x))
    x = layers[prefix + "MLM-Bias"](layers[prefix + "Embedding-Token"](x, reverse=True))
    scores = ops.cast(x, "float32")  # (batch, predictions, vocabulary)
    inputs = {tensor.name: tensor for tensor in transformer.inputs}
    return keras.Model({**inputs, POSITIONS: positions}, scores)


def start_positions(transformer: Any) -> None:
    """Initializes the position embeddings of a new model with sinusoids of the scale of random values.

    The step from one position to the next is then the same linear map everywhere, so attention learns to attend to
    neighbors much earlier than from random vectors. Source of the sinusoids: Vaswani et al., 2017,
    https://arxiv.org/abs/1706.03762.
    """
    embeddings = transformer.layers[transformer.config["prefix"] + "Embedding-Position"].embeddings
    waves = SinusoidalPositions(dtype="float32")(ops.zeros((1, *embeddings.shape)))  # their mean square is 1/2
    embeddings.assign(2**0.5 * transformer.config["initializer_range"] * waves)

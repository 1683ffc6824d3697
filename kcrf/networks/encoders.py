"""Encoders that compute a hidden vector for each position. The vectors of a sentence do not depend on padding."""

from typing import Any

from kcrf.backend import keras, ops
from kcrf.layers.embeddings import SinusoidalPositions

L = keras.layers


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

"""The CRF on NumPy arrays: what linear models, exported files and taggers compute without Keras."""

from kcrf.chains.k_best import best_sequences

__all__ = ["best_sequences"]
